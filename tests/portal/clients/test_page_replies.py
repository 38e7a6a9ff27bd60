"""Replies of pages: taken at once, sent as fast as they are read, and cut off where nobody reads."""

from __future__ import annotations

import asyncio

from portal.clients.bodies import MemoryLimit, Message
from portal.clients.page_replies import PageReply

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


class Reader:
    """A client: takes messages while ``most`` of them have not come, and then none any more."""

    def __init__(self, most: int = 10**9) -> None:
        self.messages: list[Message] = []
        self._most = most

    async def send(self, message: Message) -> None:
        if len(self.messages) >= self._most:
            await asyncio.Event().wait()
        self.messages.append(message)

    @property
    def content(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def has_all(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("more_body") is False


def answered(reader: Reader, *messages: Message, room: MemoryLimit | None = None, grace_secs: float = 60.0) -> None:
    """Put these, all before the first is sent, and send them."""

    async def run() -> None:
        with PageReply(reader.send, grace_secs, room or MemoryLimit(10**9)) as reply:
            for message in messages:
                await reply.put(message)
            await reply.send_all()

    asyncio.run(run())


def test_a_reply_comes_as_it_was_made() -> None:
    reader, room = Reader(), MemoryLimit(10**9)
    parts = [bytes([number]) * 70_000 for number in range(5)]
    answered(reader, START, *map(body, parts), body(b"", more=False), room=room)
    assert (reader.messages[0], reader.content, reader.has_all) == (START, b"".join(parts), True)
    assert room.kept == 0


def test_an_empty_reply_comes_too() -> None:
    reader = Reader()
    answered(reader, START, body(b"", more=False))
    assert (len(reader.messages), reader.has_all) == (2, True)


def test_a_part_is_sent_before_the_next_is_made() -> None:
    reader = Reader()

    async def run() -> None:
        with PageReply(reader.send, 60.0, MemoryLimit(10**9)) as reply:
            sending = asyncio.create_task(reply.send_all())
            for message in (START, body(b"first")):
                await reply.put(message)
            while reader.content != b"first":
                await asyncio.sleep(0)  # lets the other task run
            await reply.put(body(b"last", more=False))
            await sending

    asyncio.run(run())
    assert (reader.content, reader.has_all) == (b"firstlast", True)


def test_who_does_not_read_is_cut_off_and_takes_no_room() -> None:
    reader, room = Reader(most=2), MemoryLimit(10**9)
    # Nothing is taken after the first 16 KiB; the next would have to be within 8 s and the grace, which is less here.
    answered(reader, START, body(b"x" * 40_000, more=False), room=room, grace_secs=-8.0)
    assert not reader.has_all
    assert room.kept == 0


def test_what_is_made_for_many_slow_readers_has_a_limit() -> None:
    room = MemoryLimit(200_000, kept=150_000)
    long, short = Reader(), Reader()
    answered(long, START, body(b"x" * 100_000, more=False), room=room)
    assert not long.has_all
    # Short pages come through, whatever waits.
    answered(short, START, body(b"x" * 60_000, more=False), room=room)
    assert short.has_all
    assert room.kept == 150_000
