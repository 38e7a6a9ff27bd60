"""Bodies that come over an ASGI connection: too slow, cut off, longer than announced, too many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import pytest

from portal.clients.bodies import SMALL_BYTES, Body, CutOff, MemoryLimit, Message, Receive, TooMuch, TooSlow

Result = TypeVar("Result")
ROOM: Final = 1 << 30
GONE: Final[Message] = {"type": "http.disconnect"}


def run(use: Callable[[], Awaitable[Result]]) -> Result:
    async def used() -> Result:
        return await use()

    return asyncio.run(used())


def part(content: bytes, *, is_last: bool = False) -> Message:
    return {"type": "http.request", "body": content, "more_body": not is_last}


def sends(*messages: Message) -> Receive:
    """A client that sends these, and then nothing for ever."""
    left = iter(messages)

    async def receive() -> Message:
        for message in left:
            return message
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody sets it")

    return receive


def trickles() -> Receive:
    """A client that sends a byte every hundredth of a second."""

    async def receive() -> Message:
        await asyncio.sleep(0.01)
        return part(b"x")

    return receive


def body(receive: Receive, length: int, *, grace_secs: float = 60, memory: MemoryLimit | None = None) -> Body:
    return Body(receive, length, grace_secs, memory or MemoryLimit(ROOM))


def test_a_body_is_read_in_parts_of_any_length_and_ends() -> None:
    coming = body(sends(part(b"abcd"), part(b"efg"), part(b"", is_last=True)), 7)

    async def use() -> list[bytes]:
        return [await coming.next_part(nbytes) for nbytes in (3, 3, 3, 3)]

    assert run(use) == [b"abc", b"def", b"g", b""]
    assert coming.is_over


def test_what_was_announced_is_whole_without_another_message() -> None:
    assert run(lambda: body(sends(part(b"abc")), 3).read(10)) == b"abc"


def test_an_empty_body_is_not_waited_for() -> None:
    assert run(lambda: body(sends(), 0).read(10)) == b""


def test_nothing_in_time_is_too_slow() -> None:
    coming = body(sends(), 5, grace_secs=0.05)
    with pytest.raises(TooSlow):
        run(lambda: coming.read(5))
    assert not coming.is_over


def test_a_byte_at_a_time_is_too_slow() -> None:
    # 100 bytes a second, where 2,000 are the least: each takes 9.5 ms of the 500, and no pause is as long as those.
    with pytest.raises(TooSlow):
        run(lambda: body(trickles(), 1000, grace_secs=0.5).read(1000))


def test_much_at_first_buys_no_time_for_later() -> None:
    # A megabyte would be worth 500 seconds.
    coming = body(sends(part(bytes(1_000_000))), 1_000_001, grace_secs=0.05)
    with pytest.raises(TooSlow):
        run(lambda: coming.read(1_000_001))


@pytest.mark.parametrize("end", [GONE, part(b"", is_last=True), part(b"c", is_last=True)])
def test_a_body_that_ends_too_soon_is_cut_off(end: Message) -> None:
    with pytest.raises(CutOff):
        run(lambda: body(sends(part(b"ab"), end), 4).read(4))


@pytest.mark.parametrize(("end", "error"), [(GONE, CutOff), (part(b"c", is_last=True), CutOff), (part(b""), TooSlow)])
def test_a_stream_hands_out_what_came_before_the_fault(end: Message, error: type[OSError]) -> None:
    coming = body(sends(part(b"ab"), end), 4, grace_secs=0.05)

    async def use() -> bytes:
        came = await coming.next_part(4)
        for _ in range(2):
            with pytest.raises(error):
                await coming.next_part(4)
        return came

    assert run(use) == b"ab" + end.get("body", b"")


def test_what_is_more_than_announced_is_not_read() -> None:
    coming = body(sends(part(b"abcdef"), part(b"ghi")), 4)

    async def use() -> list[bytes]:
        return [await coming.read(10), await coming.read(10)]

    assert run(use) == [b"abcd", b""]


# --- memory -----------------------------------------------------------------------------------------------------------


def test_what_is_announced_takes_no_memory_and_what_comes_does_until_the_end() -> None:
    memory = MemoryLimit(ROOM)
    with body(sends(part(bytes(100))), 16 << 20, grace_secs=0.05, memory=memory) as coming:
        assert memory.kept == 0
        with pytest.raises(TooSlow):
            run(lambda: coming.read(1000))
        assert memory.kept == 100
    assert memory.kept == 0


def test_what_was_read_counts_while_its_reader_keeps_it() -> None:
    memory = MemoryLimit(ROOM)
    with body(sends(part(bytes(100))), 100, memory=memory) as coming:
        run(lambda: coming.read(100))
        assert memory.kept == 100
    assert memory.kept == 0


def test_the_parts_of_a_stream_count_until_they_are_handed_out() -> None:
    memory = MemoryLimit(ROOM)
    with body(sends(part(bytes(100))), 100, memory=memory) as coming:
        run(lambda: coming.next_part(30))
        assert memory.kept == 70


def test_a_long_body_is_refused_when_the_memory_is_full() -> None:
    memory = MemoryLimit(1_000_000, kept=1_000_001)
    piece = part(bytes(SMALL_BYTES))
    with body(sends(piece, piece, piece, piece), 4 * SMALL_BYTES, memory=memory) as coming:
        with pytest.raises(TooMuch):
            run(lambda: coming.read(4 * SMALL_BYTES))
        # It goes by, and a client that is still sending comes to the reply.
        run(lambda: coming.drop(4 * SMALL_BYTES))
        assert (coming.is_over, memory.kept) == (True, 1_000_001)


def test_a_short_body_is_read_though_the_memory_is_full() -> None:
    coming = body(sends(part(bytes(SMALL_BYTES))), SMALL_BYTES, memory=MemoryLimit(0, kept=1))
    assert len(run(lambda: coming.read(SMALL_BYTES))) == SMALL_BYTES


def test_a_stream_comes_in_shorter_parts_when_the_memory_is_full() -> None:
    piece = part(bytes(SMALL_BYTES))
    coming = body(sends(*[piece] * 8), 8 * SMALL_BYTES, memory=MemoryLimit(0, kept=1))

    async def use() -> list[int]:
        return [len(await coming.next_part(8 * SMALL_BYTES)) // SMALL_BYTES for _ in range(5)]

    # The second piece is already here when it is seen that there are too many.
    assert run(use) == [2, 2, 2, 2, 0]


# --- what nobody wants ------------------------------------------------------------------------------------------------


def test_the_rest_is_dropped_without_being_kept() -> None:
    memory = MemoryLimit(ROOM)
    with body(sends(*[part(bytes(1000))] * 10), 10_000, memory=memory) as coming:

        async def use() -> None:
            await coming.next_part(10)
            await coming.drop(10_000)

        run(use)
        assert (coming.is_over, memory.kept) == (True, 0)


def test_no_more_is_dropped_than_asked() -> None:
    coming = body(sends(*[part(bytes(1000))] * 10), 10_000)
    run(lambda: coming.drop(4_000))
    assert not coming.is_over


def test_a_slow_rest_is_not_waited_for() -> None:
    with pytest.raises(TooSlow):
        run(lambda: body(trickles(), 10_000, grace_secs=0.05).drop(10_000))
