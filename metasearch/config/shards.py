"""How many parts an outer step is cut into: a power of two, and no more than there is work for."""

from typing import Annotated

from pydantic import AfterValidator, Field

from metasearch.config.base import Contradiction


def _power_of_two(count: int) -> int:
    if count & (count - 1):
        above = 1 << count.bit_length()
        raise ValueError(f"{count} is no power of two; the nearest are {above // 2} and {above}")
    return count


Shards = Annotated[int, Field(ge=1), AfterValidator(_power_of_two)]


def require_work(shards: int, there: int, what: str) -> None:
    """Raise `Contradiction` where a step of so much work, such as 4 `episodes`, leaves some of its shards empty."""
    if shards > there:
        most = 1 << there.bit_length() - 1
        raise Contradiction(f"{shards} shards of {there} {what} in a step leave some empty; {most} at most", "shards")
