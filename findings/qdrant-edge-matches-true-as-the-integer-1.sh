#!/usr/bin/env bash
# qdrant-edge-py 0.9.0: MatchValue(True) is read as the integer 1. So a filter for a payload that is true finds nothing,
# without an error, and a filter for True finds payloads that are 1.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check qdrant-edge-py==0.9.0
cd "$work"
"$work/venv/bin/python" - <<'PY'
import os

import qdrant_edge as edge

config = edge.EdgeConfig(vectors={"v": edge.EdgeVectorParams(size=2, distance=edge.Distance.Dot)})
os.mkdir("shard")
shard = edge.EdgeShard.create("shard", config)
points = [edge.Point(number, {"v": [1.0, 0.0]}, {"new": value}) for number, value in enumerate([True, False, 1])]
shard.update(edge.UpdateOperation.upsert_points(points))


def found(value):
    condition = edge.FieldCondition("new", match=edge.MatchValue(value))
    points, _ = shard.scroll(edge.ScrollRequest(None, 10, edge.Filter(must=[condition]), True, False))
    return [(point.id, point.payload["new"]) for point in points]


print("points 0, 1, 2 have new = True, False, 1; a filter for True finds", found(True), "and one for 1", found(1))
assert [number for number, _ in found(True)] == [2]
assert found(True) == found(1)
PY
echo "seen: a filter for True finds the integer 1 and no payload that is true"
