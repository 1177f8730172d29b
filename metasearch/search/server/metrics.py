"""Counters of the server, in Prometheus text format."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """One server's counters, in their own registry."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "metasearch_requests", "Requests by path and status.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "metasearch_request_seconds", "From request to answer.", ["path"], buckets=_SECONDS, registry=registry
        )
        self.texts = Counter("metasearch_texts", "Encoded texts by kind of request.", ["kind"], registry=registry)
        self.truncated = Counter(
            "metasearch_truncated_texts", "Truncated texts by kind of request.", ["kind"], registry=registry
        )
        self.batches = Histogram("metasearch_batch_texts", "Texts in a batch.", buckets=_TEXTS, registry=registry)
        self.waiting = Gauge("metasearch_waiting_requests", "Requests that wait for the encoder.", registry=registry)
        self.passages = Gauge("metasearch_passages", "Passages of the served index.", registry=registry)
        self.outdated = Gauge(
            "metasearch_index_outdated", "1 if the index has changed and cannot be served.", registry=registry
        )

    def text(self) -> bytes:
        """Return all counters in the format that Prometheus reads."""
        return generate_latest(self.registry)
