"""Which troubles and events are reported, and when a message is retried."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras.alerts.rules import (
    FAILING_FOR,
    KEPT_TRYING,
    LASTING,
    OVER_AFTER,
    RETRY_AFTER,
    AlertKind,
    Observation,
    OpenAlert,
    Try,
    Verdict,
    evaluate,
    judge,
)

NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def silent(name: str = "attic") -> Observation:
    return Observation(AlertKind.SILENT, f"silent {name}", f"{name} has not reported for 3 days.", "/computers/1/")


LOGIN = Observation(AlertKind.SECURITY, "security 7", "signed in", "/account/events/")


def told(
    looks: Sequence[Sequence[Observation]], *, every: dt.timedelta = 10 * MINUTE, is_first: bool = False
) -> list[str]:
    """Return the reports of successive evaluations, each this long after the one before: "+key" for begun, "-key" for
    over.
    """
    open_alerts: dict[str, OpenAlert] = {}
    lines = []
    for number, seen in enumerate(looks):
        evaluated = evaluate(open_alerts, seen, NOW + number * every, is_first=is_first and number == 0)
        lines += [f"+{each.key}" for each in evaluated.begun] + [f"-{each.key}" for each in evaluated.over]
        open_alerts = evaluated.open
    return lines


def test_a_trouble_is_told_when_it_begins_and_when_it_is_over() -> None:
    looks = [[], [silent()], [silent()], [], [], []]
    # Gone at the fourth evaluation, and for an hour at the fifth.
    assert told(looks, every=OVER_AFTER) == ["+silent attic", "-silent attic"]


def test_a_trouble_that_comes_and_goes_within_the_hour_is_one() -> None:
    assert told([[silent()], [], [silent()], [], [], [silent()]]) == ["+silent attic"]


def test_one_that_comes_back_after_its_end_is_told_again() -> None:
    looks = [[silent()], [], [], [silent()]]
    assert told(looks, every=OVER_AFTER) == ["+silent attic", "-silent attic", "+silent attic"]


def test_what_is_there_at_the_first_look_is_not_told_but_what_happens_is() -> None:
    assert told([[silent(), LOGIN], [silent()]], is_first=True) == ["+security 7"]
    # Its end is reported: the volunteer may have seen it on a page.
    assert told([[silent()], [], []], every=OVER_AFTER, is_first=True) == ["-silent attic"]


def test_an_event_has_no_end() -> None:
    assert told([[LOGIN], [], [], []], every=OVER_AFTER) == ["+security 7"]


SEEN = st.builds(
    lambda kind, name, words: Observation(kind, f"{kind} {name}", words, "/"),
    st.sampled_from(AlertKind),
    st.sampled_from("abcd"),
    st.sampled_from(["one", "two"]),
)


@given(looks=st.lists(st.lists(SEEN, max_size=6), max_size=6), minutes=st.integers(1, 120), first=st.booleans())
def test_looking_again_at_the_same_tells_nothing_new(looks: list[list[Observation]], minutes: int, first: bool) -> None:
    open_alerts: dict[str, OpenAlert] = {}
    for number, seen in enumerate(looks):
        now = NOW + number * minutes * MINUTE
        evaluated = evaluate(open_alerts, seen, now, is_first=first and number == 0)
        again = evaluate(evaluated.open, seen, now)
        assert (again.begun, again.over, again.open) == ([], [], evaluated.open)
        open_alerts = evaluated.open


@given(looks=st.lists(st.lists(SEEN, max_size=6), max_size=6), minutes=st.integers(1, 120), seed=st.integers(0, 9))
def test_the_order_in_which_things_are_seen_does_not_matter(
    looks: list[list[Observation]], minutes: int, seed: int
) -> None:
    one: dict[str, OpenAlert] = {}
    other: dict[str, OpenAlert] = {}
    shuffle = random.Random(seed).shuffle
    for number, seen in enumerate(looks):
        mixed = list(seen)
        shuffle(mixed)
        now = NOW + number * minutes * MINUTE
        first, second = evaluate(one, seen, now), evaluate(other, mixed, now)
        assert first == second
        one, other = first.open, second.open


@given(looks=st.lists(st.lists(SEEN, max_size=6), max_size=8), minutes=st.integers(1, 120))
def test_what_is_over_had_begun_and_nothing_begins_twice_without_an_end(
    looks: list[list[Observation]], minutes: int
) -> None:
    open_alerts: dict[str, OpenAlert] = {}
    open_now: set[str] = set()
    for number, seen in enumerate([*looks, [], [], []]):
        evaluated = evaluate(open_alerts, seen, NOW + number * minutes * MINUTE)
        begun, over = ({each.key for each in some} for some in (evaluated.begun, evaluated.over))
        assert not begun & open_now and over <= open_now
        assert all(each.kind in LASTING for each in evaluated.over)
        open_alerts = evaluated.open
        # An event may be forgotten silently.
        open_now = (open_now | begun) & set(open_alerts)


# --- retrying --------------------------------------------------------------------------------------------


def tried(status: int | None, ntries: int = 1, **fields: Any) -> Try:
    usual = Try(status=status, is_refused=False, ntries=ntries, created_at=NOW, failing_since=None)
    return replace(usual, **fields)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.SENT),
        (204, Verdict.SENT),
        (301, Verdict.FAILED),
        (400, Verdict.FAILED),
        (401, Verdict.FAILED),
        (404, Verdict.PAUSE),
        (410, Verdict.PAUSE),
        (429, Verdict.LATER),
        (500, Verdict.LATER),
        (503, Verdict.LATER),
        (None, Verdict.LATER),
    ],
)
def test_the_answer_decides(status: int | None, verdict: Verdict) -> None:
    assert judge(tried(status), NOW)[0] is verdict


def test_an_address_that_is_refused_pauses_its_channel() -> None:
    assert judge(tried(None, is_refused=True), NOW) == (Verdict.PAUSE, None)


def test_each_try_waits_longer_until_it_is_given_up_within_a_day() -> None:
    now, waits = NOW, []
    for ntries in range(1, 20):
        verdict, again_at = judge(tried(503, ntries), now)
        if again_at is None:
            break
        waits.append(again_at - now)
        now = again_at
    assert tuple(waits[: len(RETRY_AFTER)]) == RETRY_AFTER and set(waits[len(RETRY_AFTER) :]) == {RETRY_AFTER[-1]}
    assert verdict is Verdict.FAILED and now - NOW < KEPT_TRYING


def test_a_server_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() -> None:
    assert judge(tried(429, retry_secs=600), NOW)[1] == NOW + 10 * MINUTE
    assert judge(tried(429, retry_secs=1), NOW)[1] == NOW + RETRY_AFTER[0]
    # Longer than the message is useful
    assert judge(tried(429, retry_secs=86_400), NOW) == (Verdict.FAILED, None)


def test_a_channel_that_has_failed_for_days_is_paused_but_not_at_the_first_try_of_a_message() -> None:
    since = NOW - FAILING_FOR
    assert judge(tried(503, 1, failing_since=since), NOW)[0] is Verdict.LATER
    assert judge(tried(503, 3, failing_since=since), NOW)[0] is Verdict.PAUSE
    assert judge(tried(503, 3, failing_since=since + MINUTE), NOW)[0] is Verdict.LATER
    assert judge(tried(200, 3, failing_since=since), NOW)[0] is Verdict.SENT


def test_a_channel_that_has_refused_messages_for_days_is_paused_as_none_of_them_is_tried_again() -> None:
    since = NOW - FAILING_FOR
    assert judge(tried(403, 1, failing_since=since), NOW) == (Verdict.PAUSE, None)
    assert judge(tried(403, 1, failing_since=since + MINUTE), NOW) == (Verdict.FAILED, None)
