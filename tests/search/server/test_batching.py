"""Texts of several requests are done together, and in parts; `test_load_served` has failures and clients that go."""

import asyncio
import threading

from metasearch.search.server.batching import Batcher
from metasearch.search.server.settings import Limits


class Doer:
    """Returns each text in capitals, and keeps what it was called with; `go` holds it."""

    def __init__(self):
        self.called = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, work, texts):
        self.called.append((work, list(texts)))
        assert self.go.wait(20)
        return [text.upper() for text in texts]


def working(scenario, doer=None, **limits):
    """Run a scenario, a coroutine function of the batches, while they work; return what it returns."""

    async def whole():
        batches = Batcher(doer or Doer(), Limits(**limits))
        loop = asyncio.create_task(batches.run())
        try:
            return await asyncio.wait_for(scenario(batches), 20)
        finally:
            loop.cancel()

    return asyncio.run(whole())


def test_requests_that_come_together_are_done_together_and_each_gets_its_own():
    doer = Doer()

    async def scenario(batches):
        return await asyncio.gather(batches.submit("e", ["a", "b"]), batches.submit("e", ["c"]))

    assert working(scenario, doer) == [["A", "B"], ["C"]]
    assert doer.called == [("e", ["a", "b", "c"])]


def test_a_large_request_goes_in_parts_and_a_small_one_does_not_wait_for_all_of_it():
    doer = Doer()
    large = [f"{i}" for i in range(10)]

    async def scenario(batches):
        return await asyncio.gather(batches.submit("e", large), batches.submit("s", ["b"]))

    assert working(scenario, doer, batch_texts=4) == [large, ["B"]]
    assert [len(texts) for _, texts in doer.called] == [4, 1, 4, 2]


def test_a_batch_that_outlives_the_batcher_is_known_and_not_waited_for():
    doer = Doer()
    doer.go.clear()
    made = []

    async def whole():
        batches = Batcher(doer, Limits())
        made.append(batches)
        assert not batches.busy
        running = asyncio.create_task(batches.run())
        asked = batches.submit("e", ["a"])
        while not doer.called:
            await asyncio.sleep(0.01)
        for task in (asked, running):
            task.cancel()
        await asyncio.gather(asked, running, return_exceptions=True)

    asyncio.run(whole())  # it returns, though the work does not
    assert made[0].busy
    doer.go.set()
    while made[0].busy:
        threading.Event().wait(0.01)
