"""How much one request, and all of them together, may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of the server; each is named in the error of a request that goes beyond it.

    Attributes:
        inputs: texts of a request.
        size: bytes of a request's body.
        hits: passages for each query.
        waiting: requests that wait for the encoder; of more, each is asked to come again.
        timeout: seconds for the head of a request to come in, then for its body, then for the answer.
        grace: seconds for what was begun when the server is told to stop.
        batch_texts: texts that are encoded at a time.
        batch_size: characters of these, at most, where there are several.
        batch_wait: seconds that a text waits for others to be encoded with.
    """

    inputs: int = 256
    size: int = 2_000_000
    hits: int = 100
    waiting: int = 64
    timeout: float = 30.0
    grace: int = 10
    batch_texts: int = 64
    batch_size: int = 32_768
    batch_wait: float = 0.005
