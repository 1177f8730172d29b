"""What the server counts, in the text format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "metasearch_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "metasearch_request_seconds", "From request to answer.", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self._texts = Counter("metasearch_texts", "Texts encoded, by what for.", ["kind"], registry=self.registry)
        self._cut = Counter(
            "metasearch_truncated_texts", "Texts whose end was not read, by what for.", ["kind"], registry=self.registry
        )
        self.batches = Histogram(
            "metasearch_batch_texts", "Texts encoded at a time.", buckets=_TEXTS, registry=self.registry
        )
        self.waiting = Gauge(
            "metasearch_waiting_requests", "Requests that wait for the encoder.", registry=self.registry
        )

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count(self, kind: str, texts: int, cut: int) -> None:
        """Count texts that were encoded, and those of them that were cut."""
        self._texts.labels(kind).inc(texts)
        self._cut.labels(kind).inc(cut)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self.registry)
