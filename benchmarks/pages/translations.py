"""How much of the gain of a map of translations is due to the tested pages, and to translations at all.

    python -m benchmarks.pages.translations --index faq.index --queries ~/data/pages/queries/debian-faq.jsonl

As in `benchmarks.pages.adapt`, a quarter of the pages is searched for, four times, with balanced scores. The map is
estimated from all pages, as in an index; without the tested ones; and with an unrelated page in the place of each
translation, as a control.
"""

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.pages.adapt import Array, Pool
from metasearch.evaluation.statistics.paired import clustered_test
from metasearch.runs.markdown import markdown
from metasearch.search.index.maps import mapped, translation_map

DRAWS = 4
ALL, OTHERS, UNRELATED = "all pages", "without the tested pages", "unrelated pages, without the tested ones"


def maps(pool: Pool, tested: set[str], seed: int) -> Iterator[tuple[str, Array]]:
    """Yield each way to estimate the map."""
    rows: dict[str, dict[int, list[int]]] = {}
    for row, file in enumerate(pool.of_row.tolist()):
        rows.setdefault(pool.pages[file], {}).setdefault(file, []).append(row)
    several = {name: list(own.values()) for name, own in rows.items() if len(own) > 1}
    free = [own for name, own in several.items() if name not in tested]
    yield ALL, translation_map([[pool.documents[page] for page in own] for own in several.values()])
    yield OTHERS, translation_map([[pool.documents[page] for page in own] for own in free])
    rng = np.random.default_rng(seed)
    columns = [[own[i % len(own)] for own in free] for i in range(max(map(len, free)))]
    mixed = zip(*([column[i] for i in rng.permutation(len(column)).tolist()] for column in columns), strict=True)
    yield UNRELATED, translation_map([[pool.documents[page] for page in own] for own in mixed])


@click.command(cls=Command)
@click.option("--index", required=True, type=click.Path(path_type=Path), help="Folder of the index.")
@click.option("--queries", required=True, type=click.Path(path_type=Path), help="Of `benchmarks.pages.build`.")
def main(index: Path, queries: Path) -> None:
    """Print the gains of mAP@20 over a projection and balanced scores."""
    pool, gains, groups = Pool(index, queries), dict[str, list[Array]](), list[str]()
    for seed in range(DRAWS):
        _, test = pool.draw(0, seed)
        base = pool.scores(pool.plain[test], test)[1]
        groups += pool.asked[test].tolist()
        for name, matrix in maps(pool, set(pool.asked[test].tolist()), seed):
            gains.setdefault(name, []).append(pool.scores(mapped(pool.plain[test], matrix), test)[1] - base)
    found = {name: np.concatenate(own).tolist() for name, own in gains.items()}
    tests = {name: clustered_test(own, [0.0] * len(own), groups) for name, own in found.items()}
    click.echo(markdown(["map from", "gain"], [[name, test.shown()] for name, test in tests.items()]))


if __name__ == "__main__":
    main()
