"""Generated requests read back to what they were made from, and mutated ones raise nothing but ProtocolError."""

import json
import os
import random
import re
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.wire import requests as wire_requests
from accounting.wire.requests import parse_request
from portal.wire import hardware
from portal.wire.names import cleaned
from portal.wire.scanner import DEFAULT_LIMITS, Limits, ProtocolError, TagScanner
from tests.support.am_requests import SentProject, SentRequest, captured_requests

amounts = st.floats(0, 1e12)
durations = st.floats(0, 1e9)
counts = st.integers(0, 2**31 - 1)
words = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789._-", min_size=1, max_size=30)
# All that a name can hold, but for a closing tag of its own and what cannot be stored or is not its text.
names = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
    .map(str.strip)
    .map(lambda name: name.strip(" \t\n\r\x0b\x0c").encode()[:200].decode("utf-8", "ignore"))
    .filter(lambda name: name == name.strip() and "</project_name>" not in name)
    .filter(lambda name: "<project_name>" not in name)
)
projects = st.builds(
    SentProject,
    url=words.map(lambda word: f"http://{word}.example.org/"),
    name=names.map(str.encode),
    flags=st.tuples(*[st.booleans()] * 5),
    hostid=counts,
    not_started_dur=durations,
    in_progress_dur=durations,
    resource_share=st.floats(0, 1e6),
    totals=st.none() | st.tuples(amounts, amounts, amounts, amounts, counts, counts),
    no_work=st.lists(words, max_size=5, unique=True).map(tuple),
    account_key=words,
)
requests = st.builds(
    SentRequest,
    projects=st.lists(projects, max_size=6),
    authenticator=words.map(str.encode),
    domain_name=words.map(str.encode),
    host_cpid=st.text("0123456789abcdef", min_size=32, max_size=32),
    opaque=st.text("0123456789abcdef", min_size=32, max_size=64).map(lambda t: b"<host>%s</host>" % t.encode()),
    now=st.floats(0, 1e10),
    alt_platforms=st.lists(words, max_size=3).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(requests)
def test_what_a_client_prints_reads_back(sent: SentRequest) -> None:
    read = parse_request(sent.printed())
    assert read.authenticator.encode() == sent.authenticator
    assert read.domain_name == cleaned(sent.domain_name.decode())
    assert read.host_cpid == sent.host_cpid
    assert read.opaque.encode() == sent.opaque
    assert f"<host>{read.host_token}</host>" == read.opaque
    assert read.client_now == float(f"{sent.now:f}")
    assert read.alt_platforms == sent.alt_platforms
    assert len(read.projects) == len(list(sent.projects))
    for project, original in zip(read.projects, sent.projects, strict=True):
        check_project(project, original)


def check_project(read: wire_requests.ReportedProject, sent: SentProject) -> None:
    via_manager = sent.flags[1]
    assert read.url == sent.url
    assert read.project_name == cleaned(sent.name.decode())
    assert (
        read.suspended_via_gui,
        read.attached_via_acct_mgr,
        read.dont_request_more_work,
        read.detach_when_done,
        read.ended,
    ) == sent.flags
    assert read.hostid == sent.hostid
    assert read.not_started_dur == float(f"{sent.not_started_dur:f}")
    assert read.in_progress_dur == float(f"{sent.in_progress_dur:f}")
    assert read.resource_share == float(f"{sent.resource_share:f}")
    assert read.account_key == (sent.account_key if via_manager else "")
    assert read.fault is None
    if sent.totals is None:
        assert (read.totals, read.no_work) == (None, ())
        return
    # The printed digits without their point are the micro-units.
    printed = tuple(int(f"{value:f}".replace(".", "")) for value in sent.totals[:4])
    assert read.totals == (*printed, *sent.totals[4:])
    assert read.no_work == sent.no_work


class WatchedScanner(TagScanner):
    """A scanner that can be asked afterwards how much it did."""

    all: ClassVar[list[TagScanner]] = []

    def __init__(self, data: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(data, limits)
        WatchedScanner.all.append(self)


def short(body: bytes) -> bytes:
    """A captured request without its bulk: one line of preferences and of processor features is enough."""
    body = re.sub(rb"(<mod_time>[^\n]*\n).*?(</global_preferences>)", rb"\1\2", body, flags=re.DOTALL)
    return re.sub(rb"(<p_features>fpu)[^<]*", rb"\1", body)


FULL = list(captured_requests().values())
SHORT = [short(body) for body in FULL]
TAGS = sorted({tag for body in FULL for tag in re.findall(rb"</?\w+/?>", body)})
PIECES = [
    *TAGS, b"<", b">", b"</", b"/>", b"&", b"\0", b"\xff\xfe", b"<![CDATA[", b"]]>", b"<!--", b"-->",
    b"nan", b"inf", b"-1", b"1e400", b"1e300", b"0x10", b"99999999999", b"9" * 400, b"<project>", b"</project>",
    b"<a>" * 40, b"<project><url>http://x.example.org/</url></project>" * 30, b" " * 500,
]  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """A captured request, mostly a shortened one, after one to six random changes."""
    body = bytearray(rng.choice(FULL if rng.random() < 0.05 else SHORT))
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(body) + 1)
        end = min(len(body), at + int(rng.expovariate(1 / 60)))
        match rng.randrange(7):
            case 0:  # flip bits
                for place in rng.sample(range(len(body)), min(len(body), rng.randint(1, 20))):
                    body[place] ^= 1 << rng.randrange(8)
            case 1:  # delete
                del body[at:end]
            case 2:  # duplicate
                body[at:at] = body[at:end] * rng.randint(1, 20)
            case 3:  # splice in a part of another
                other = rng.choice(SHORT)
                start = rng.randrange(len(other))
                body[at:end] = other[start : start + int(rng.expovariate(1 / 300))]
            case 4:  # swap a tag for another
                body = bytearray(bytes(body).replace(rng.choice(TAGS), rng.choice(TAGS), rng.randint(1, 3)))
            case 5:  # insert
                body[at:at] = rng.choice(PIECES)
            case _:  # cut off
                if rng.random() < 0.2:
                    del body[at:]
    return bytes(body)


MUTATED = int(os.environ.get("FUZZ_REQUESTS", "2000"))
"""Requests of each seed; `make fuzz` has more."""


@pytest.mark.parametrize("seed", range(10))
def test_mutated_requests_raise_nothing_but_protocol_errors(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_requests, "TagScanner", WatchedScanner)
    monkeypatch.setattr(hardware, "TagScanner", WatchedScanner)
    rng = random.Random(seed)
    refused = faulty = 0
    for _ in range(MUTATED):
        body = mutated(rng)
        WatchedScanner.all.clear()
        try:
            request = parse_request(body)
        except ProtocolError as error:
            assert error.field
            assert error.error_num == -112
            refused += 1
        else:
            check_bounds(request, body)
            faulty += any(project.fault or project.unreadable for project in request.projects)
        check_work(body)
    # The mutations reach both sides: most requests survive, some are refused, some have a faulty total.
    assert 0.03 < refused / MUTATED < 0.5
    assert 0.01 < faulty / MUTATED < 0.5


def check_work(body: bytes) -> None:
    """Each tag was looked at once, but for those that ended an element that was never closed."""
    assert 1 <= len(WatchedScanner.all) <= 2  # the request and its hardware
    for scanner in WatchedScanner.all:
        assert scanner.elements <= min(DEFAULT_LIMITS.elements, scanner.data.count(b"<") + DEFAULT_LIMITS.unclosed)
        assert len(scanner.data) <= len(body)


def check_bounds(request: wire_requests.AccountManagerRequest, body: bytes) -> None:
    """What came out is within its limits, and can be stored."""
    assert len(request.projects) <= wire_requests.MAX_PROJECTS
    assert len(request.opaque) <= wire_requests.MAX_OPAQUE
    contact = json.dumps(request.contact(), allow_nan=False)
    assert "\\u0000" not in contact
    assert len(contact) < 3_000
    described = request.hardware()
    if described is not None:
        assert len(described.coprocs) <= hardware.MAX_COPROCS
        assert described.ncpus is None or 1 <= described.ncpus <= 65_535
        assert len(described.p_model) <= 256
    for project in request.projects:
        assert project.totals is None or project.fault is None
        if project.totals is not None:
            assert all(0 <= amount < 10**21 for amount in project.totals)
        assert "\0" not in project.project_name + project.url + project.account_key
    assert sum(len(project.project_name) for project in request.projects) <= len(body)


@settings(max_examples=100, deadline=None)
@given(requests)
def test_a_project_just_as_clients_print_it_reads_as_one_with_something_more(sent: SentRequest) -> None:
    body = sent.printed()
    assert parse_request(body.replace(b"</project>", b"<more/></project>")).projects == parse_request(body).projects


@pytest.mark.parametrize("body", captured_requests().values(), ids=captured_requests().keys())
def test_a_captured_project_reads_as_one_with_something_more(body: bytes) -> None:
    assert parse_request(body.replace(b"</project>", b"<more/></project>")).projects == parse_request(body).projects
