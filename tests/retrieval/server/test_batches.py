"""Texts of several requests are done together, in parts, and fail apart."""

import asyncio
import subprocess
import sys
import threading

import pytest

from metasearch.retrieval.server.batches import Batches
from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.limits import Limits
from metasearch.retrieval.server.thread import Thread


class Doer:
    """Returns each text in capitals, and keeps what it was called with; a text `bad` fails, and `go` holds it."""

    def __init__(self):
        self.called = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, work, texts):
        self.called.append((work, list(texts)))
        assert self.go.wait(20)
        if "bad" in texts:
            raise ValueError("bad")
        return [text.upper() for text in texts]


def working(scenario, doer=None, **limits):
    """Run a scenario, a coroutine function of the batches, while they work; return what it returns."""

    async def whole():
        batches = Batches(doer or Doer(), Limits(**limits))
        loop = asyncio.create_task(batches.run())
        try:
            return await asyncio.wait_for(scenario(batches), 20)
        finally:
            loop.cancel()

    return asyncio.run(whole())


def test_requests_that_come_together_are_done_together_and_each_gets_its_own():
    doer = Doer()

    async def scenario(batches):
        return await asyncio.gather(batches.ask("e", ["a", "b"]), batches.ask("e", ["c"]))

    assert working(scenario, doer) == [["A", "B"], ["C"]]
    assert doer.called == [("e", ["a", "b", "c"])]


def test_different_work_is_not_mixed():
    doer = Doer()

    async def scenario(batches):
        return await asyncio.gather(batches.ask("e", ["a"]), batches.ask("s", ["b"]), batches.ask("e", ["c"]))

    assert working(scenario, doer) == [["A"], ["B"], ["C"]]
    assert doer.called == [("e", ["a", "c"]), ("s", ["b"])]


def test_a_large_request_goes_in_parts_and_a_small_one_does_not_wait_for_all_of_it():
    doer = Doer()
    large = [f"{i}" for i in range(10)]

    async def scenario(batches):
        return await asyncio.gather(batches.ask("e", large), batches.ask("s", ["b"]))

    assert working(scenario, doer, batch_texts=4) == [large, ["B"]]
    assert [len(texts) for _, texts in doer.called] == [4, 1, 4, 2]


def test_long_texts_fill_a_batch_with_fewer():
    doer = Doer()
    texts = ["a" * 60, "b" * 60, "c" * 200]

    async def scenario(batches):
        return await batches.ask("e", texts)

    assert working(scenario, doer, batch_size=130) == [text.upper() for text in texts]
    assert [texts for _, texts in doer.called] == [texts[:2], texts[2:]]


def test_one_that_fails_does_not_fail_the_others():
    async def scenario(batches):
        asked = [batches.ask("e", texts) for texts in (["a"], ["b", "bad"], ["c"])]
        return await asyncio.gather(*asked, return_exceptions=True)

    first, failed, last = working(scenario)
    assert (first, last) == (["A"], ["C"])
    assert isinstance(failed, ValueError)


def test_what_was_cancelled_is_not_begun():
    doer = Doer()
    doer.go.clear()

    async def scenario(batches):
        first = asyncio.create_task(batches.ask("e", ["a"]))
        while not doer.called:
            await asyncio.sleep(0.001)
        gone, stays = (asyncio.create_task(batches.ask("e", [text])) for text in ("b", "c"))
        await asyncio.sleep(0)
        gone.cancel()
        doer.go.set()
        return await first, await stays, batches.waiting

    assert working(scenario, doer) == (["A"], ["C"], 0)
    assert doer.called == [("e", ["a"]), ("e", ["c"])]


def test_more_than_may_wait_are_asked_to_come_again():
    async def scenario(batches):
        two = [asyncio.create_task(batches.ask("e", [text])) for text in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="2 requests are waiting") as refused:
            await batches.ask("e", ["c"])
        await asyncio.gather(*two)
        return refused.value, await batches.ask("e", ["c"])

    refused, later = working(scenario, waiting=2)
    assert (refused.status, refused.headers) == (429, {"retry-after": "1"})
    assert later == ["C"]


def test_what_is_being_done_when_the_batches_end_is_known_and_does_not_hold_the_process():
    doer = Doer()
    doer.go.clear()
    made = []

    async def whole():
        batches = Batches(doer, Limits())
        made.append(batches)
        assert not batches.busy
        running = asyncio.create_task(batches.run())
        asked = asyncio.create_task(batches.ask("e", ["a"]))
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


def test_python_does_not_wait_for_the_thread_at_its_end():
    worker = "metasearch.retrieval.server.thread"
    code = f"import time; from {worker} import Thread; Thread('a').submit(time.sleep, 99); time.sleep(.2)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


def test_the_thread_gives_results_and_errors_in_their_order():
    thread = Thread("one")
    found = [thread.submit(int, written) for written in ("1", "one", "3")]
    assert found[0].result() == 1
    with pytest.raises(ValueError, match="invalid literal"):
        found[1].result()
    assert found[2].result() == 3
    thread.shutdown()
