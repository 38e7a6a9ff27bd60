"""Availability from a trace in the form of the Failure Trace Archive. The traces here were made for these tests."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import ScenarioError
from emulator.files.presets import preset
from emulator.files.trace_archive import read_trace, read_watched, with_trace

HEADER = (
    b"# event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\t"
    b"event_start_time\tevent_stop_time\tevent_end_reason\n"
)
START = 1_206_831_600  # of all traces here


def line(
    node: object,
    since: float,
    until: float,
    up: int = 1,
    *,
    name: str = "host",
    component: int = 7,
    last: str = "\tNULL",
) -> bytes:
    return f"1\t{component}\t{node}\t1\t{name}\t{up}\t{START + since}\t{START + until}{last}\n".encode()


THREE_DAYS = [
    HEADER,
    line(100, 0, 3600),
    line(100, 3600, 7200, 0),
    line(100, 7200, 10_800),
    line(205, 500, 900, name="desktop"),
    line(100, 10_800, 12_000),  # touches the last
    line(100, 20_000, 30_000),
]


def test_the_intervals_of_a_node_begin_at_its_first_event() -> None:
    found = read_trace(THREE_DAYS, "100")
    # 3,600 + 4,800 + 10,000 of 30,000 seconds
    assert found.availability.fraction == pytest.approx(18_400 / 30_000)
    assert found.availability.trace_secs == 30_000
    assert list(found.availability.trace) == [(0, 3600), (7200, 12_000), (20_000, 30_000)]
    assert (found.nodes, found.components) == (2, 1)


def test_a_node_is_found_by_its_name_and_the_first_is_the_default() -> None:
    assert read_trace(THREE_DAYS, "desktop").availability.trace == ((0, 400),)
    assert read_trace(THREE_DAYS).node == "100"


def test_where_only_failures_are_told_the_rest_is_available() -> None:
    lines = [line(1, 100, 200, 0), line(1, 150, 300, 0), line(1, 900, 1000, 0)]
    assert read_trace(lines).availability.trace == ((200, 800),)
    # It was watched from 100 s earlier to 500 s later.
    watched = (START + 0.0, START + 1500.0)
    assert read_trace(lines, "1", watched).availability.trace == ((0, 100), (300, 900), (1000, 1500))


def test_a_line_that_names_the_columns_gives_their_order() -> None:
    lines = [b"node_id\tevent_type\tevent_start_time\tevent_stop_time\tcomponent_id\n", b"9\t1\t50\t80\t1\n"]
    assert read_trace(lines).availability.trace_secs == 30


def test_the_last_column_may_be_missing_and_spaces_may_separate_them() -> None:
    assert read_trace([line(1, 0, 10, last="")]).availability.trace == ((0, 10),)
    assert read_trace([line(1, 0, 10).replace(b"\t", b"  ")]).availability.trace == ((0, 10),)


def test_of_several_components_the_first_counts() -> None:
    found = read_trace([line(1, 0, 10), line(1, 5, 100, component=8)])
    assert (found.availability.trace, found.components) == (((0, 10),), 2)


def test_the_table_of_components_says_how_long_a_node_was_watched() -> None:
    head = b"#component_id\tnode_id\tplatform_id\tnode_name\tcomponent_type\ttrace_start\ttrace_end\tresolution\n"
    rows = [head, b"7\t100\t1\thost\t1\t500\t900\t1\n", b"8\t205\t1\tdesktop\t1\tNULL\tNULL\t1\n"]
    assert read_watched(rows, "100") == (500, 900)
    assert read_watched(rows, "205") is None
    assert read_watched(rows, "3") is None
    with pytest.raises(ScenarioError, match=r"component\.tab, line 1: no line names the columns"):
        read_watched(rows[1:], "100")


@pytest.mark.parametrize(
    ("lines", "node", "said"),
    [
        ([], "", "event_trace.tab: it has no events"),
        (THREE_DAYS, "3", "it has no events of a node '3'"),
        ([line(1, 0, 10), b"1\t2\t3\n"], "", "line 2: there are 3 columns, not 9"),
        ([line(1, 10, 0)], "", "line 1: .* are not two times in order"),
        ([line(1, 0, 10).replace(str(START).encode(), b"nan")], "", "not two times in order"),
        ([line(1, 0, 1e304)], "", "not two times in order"),
        ([line(1, 0, 10, up=2)], "", "event_type is '2', not 0 or 1"),
        ([line(1, 0, 10, name="x" * 5000)], "", "line 1: longer than 4096 bytes"),
        ([line(1, 5, 5)], "", "trace_secs"),
        ([line(1, i * 10, i * 10 + 5) for i in range(20_001)], "", "the limit is 0 to 20000"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(lines: Sequence[bytes], node: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        read_trace(lines, node)


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_no_bytes_make_it_fail_otherwise(lines: list[bytes]) -> None:
    with contextlib.suppress(ScenarioError):
        read_trace(lines)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500), st.booleans()), min_size=1, max_size=20))
def test_a_trace_is_up_where_an_event_says_so(events: list[tuple[int, int, bool]]) -> None:
    """Compared second by second with the plainest reading."""
    events = [(min(a, b), max(a, b) + 1, up) for a, b, up in events]
    first, last = min(e[0] for e in events), max(e[1] for e in events)
    has_ups = any(up for *_, up in events)
    found = read_trace([line(1, since, until, int(up)) for since, until, up in events]).availability
    assert found.trace_secs == last - first
    for second in range(last - first):
        told = [up for since, until, up in events if since <= first + second < until]
        known = any(told) if has_ups else not told
        assert any(since <= second < until for since, until in found.trace) is known


def test_a_computer_on_the_trace_computes_only_while_it_is_available() -> None:
    scenario = with_trace(preset("s1_two_equal_cpu").scenario, read_trace(THREE_DAYS, "100"))
    assert scenario.notes[-1] == "The computer is available as the node 100 of the trace was."
    result = run(scenario, make_policy("rec", scenario, {}), 30_000 / 86_400, 1)
    assert result.timeline is not None
    starts, ends = result.timeline.blocks.start_secs, result.timeline.blocks.end_secs
    assert len(starts) > 0
    for start, end in zip(starts, ends, strict=True):
        assert any(since <= start and end <= until for since, until in ((0, 3600), (7200, 12_000), (20_000, 30_000)))
