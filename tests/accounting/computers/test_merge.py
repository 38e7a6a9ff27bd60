"""Merge: two records of one computer become one, and not a micro-second is lost or invented."""

from __future__ import annotations

import datetime as dt
import io
import threading
import zipfile
from collections.abc import Iterator
from typing import IO

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounting.computers.merge import MergeRefused, candidates, merge, preview
from accounting.engine.merge_rules import Rule
from accounting.exchange import exports, made_files
from accounting.exchange.day_rows import DayRange
from accounting.models import DataCopy, Day, GrantedDay, GrantedTotal, HostLedger, HostProject, Note, Project
from portal.models import ClientKey, Host, User
from tests.support.accounting_factories import at, credit, granted, make_host, make_note, make_project

COLUMNS = ("cpu_ec", "gpu_ec", "cpu_time", "gpu_time", "njobs_success", "njobs_error")


@pytest.fixture
def old(alice: User) -> Host:
    return make_host(alice, "attic", "2026-01-01", "2026-02-10")


@pytest.fixture
def new(alice: User) -> Host:
    return make_host(alice, "attic", "2026-02-10", "2026-03-20")


def rule_of(owner: User, a: Host, b: Host) -> Rule:
    with pytest.raises(MergeRefused) as refused:
        merge(owner.pk, a.pk, b.pk)
    assert not Host.objects.exclude(merged_into=None).exists()
    return refused.value.refusal.rule


def test_the_record_in_use_stays_whichever_is_named_first(alice: User, old: Host, new: Host) -> None:
    assert merge(alice.pk, old.pk, new.pk) == new
    assert Host.objects.get(pk=old.pk).merged_into == new
    assert Host.objects.get(pk=new.pk).merged_into is None


def test_days_of_both_are_added_where_they_meet(alice: User, old: Host, new: Host) -> None:
    project = make_project()
    credit(old, project, "2026-01-31", (1, 2, 3, 4, 5, 6), flags=1)
    credit(old, project, "2026-02-10", (10, 0, 20, 0, 1, 0), flags=1)
    credit(new, project, "2026-02-10", (7, 1, 9, 2, 0, 1), flags=2)
    merge(alice.pk, old.pk, new.pk)
    # 10 + 7, 0 + 1, 20 + 9, 0 + 2, 1 + 0, 0 + 1; the marks of both
    assert list(Day.objects.order_by("day").values_list("day__day", "host_id", *COLUMNS, "flags")) == [
        (31, new.pk, 1, 2, 3, 4, 5, 6, 1),
        (10, new.pk, 17, 1, 29, 2, 1, 1, 3),
    ]
    # 1 + 10 + 7, 2 + 0 + 1, 3 + 20 + 9, 4 + 0 + 2, 5 + 1 + 0, 6 + 0 + 1
    assert HostProject.objects.get().credited == [18, 3, 32, 6, 6, 7]


def test_what_the_client_reported_last_stays_with_the_record_in_use(alice: User, old: Host, new: Host) -> None:
    project = make_project()
    credit(old, project, "2026-01-31", (5, 0, 6, 0, 1, 0))
    HostProject.objects.filter(host=old).update(
        reported=[900] * 6, earlier=[[950] * 6], restart=[0] * 6, handed=[7] * 6, listed=True
    )
    credit(new, project, "2026-03-01", (2, 0, 3, 0, 1, 0))
    HostProject.objects.filter(host=new).update(reported=[2, 0, 3, 0, 1, 0], pending=[1] * 6, listed=True)
    HostProject.objects.filter(host=old).update(pending=[10] * 6, dropped=[100] * 6)
    merge(alice.pk, old.pk, new.pk)
    row = HostProject.objects.get()
    assert [int(total) for total in row.reported or []] == [2, 0, 3, 0, 1, 0]
    assert (row.earlier, row.handed, row.listed) == ([], None, True)
    assert row.credited == [7, 0, 9, 0, 2, 0]
    assert row.pending == [11] * 6
    assert row.dropped == [100] * 6


def test_a_project_that_the_new_record_never_had_comes_with_the_wishes(alice: User, old: Host, new: Host) -> None:
    credit(old, make_project(), "2026-01-31", (5, 0, 6, 0, 1, 0))
    HostProject.objects.filter(host=old).update(
        reported=[900] * 6, listed=True, excluded=True, no_rsc=["CPU"], update_asked=True, state={"ended": True}
    )
    merge(alice.pk, old.pk, new.pk)
    row = HostProject.objects.get(host=new)
    # As if never seen there: what a client reports of it next is a base and credits nothing.
    assert (row.reported, row.handed, row.listed, row.state) == (None, None, False, {})
    assert (row.excluded, row.no_rsc, row.update_asked) == (True, ["CPU"], False)


def test_notes_keys_and_the_given_name_follow(alice: User, old: Host, new: Host) -> None:
    Host.objects.filter(pk=old.pk).update(given_name="Attic tower")
    make_note(old, "dropped", "2026-02-10", detail="cpu_ec", amount=5, count=2)
    make_note(new, "dropped", "2026-02-10", detail="cpu_ec", amount=7, first_at=at("2026-02-10", 5))
    make_note(old, "reset", "2026-01-15")
    key = ClientKey.objects.create(user=alice, host=old, origin="attach", key_hash=b"1" * 32)
    assert merge(alice.pk, old.pk, new.pk).name == "Attic tower"
    notes = Note.objects.order_by("day")
    assert [(n.host_id, n.kind, int(n.amount), n.count) for n in notes] == [
        (new.pk, "reset", 0, 1),
        (new.pk, "dropped", 12, 3),  # 5 + 7; 2 + 1
    ]
    assert Note.objects.get(kind="dropped").first_at == at("2026-02-10", 1)
    assert ClientKey.objects.get(pk=key.pk).host == new


def test_a_name_given_to_the_record_in_use_stays(alice: User, old: Host, new: Host) -> None:
    Host.objects.filter(pk=old.pk).update(given_name="Old name")
    Host.objects.filter(pk=new.pk).update(given_name="New name")
    assert merge(alice.pk, old.pk, new.pk).name == "New name"


def test_merging_again_changes_nothing(alice: User, old: Host, new: Host) -> None:
    project = make_project()
    credit(old, project, "2026-01-31", (5, 0, 6, 0, 1, 0))
    merge(alice.pk, old.pk, new.pk)
    before = list(Day.objects.values()), list(HostProject.objects.values())
    assert merge(alice.pk, new.pk, old.pk) == new
    assert (list(Day.objects.values()), list(HostProject.objects.values())) == before


def test_chains_end_at_the_record_in_use(alice: User, old: Host, new: Host) -> None:
    newest = make_host(alice, "attic", "2026-04-01", "2026-05-01")
    merge(alice.pk, old.pk, new.pk)
    merge(alice.pk, new.pk, newest.pk)
    assert {h.merged_into_id for h in Host.objects.filter(pk__in=[old.pk, new.pk])} == {newest.pk}
    other = make_host(alice, "attic", "2026-06-01", "2026-07-01")
    with pytest.raises(MergeRefused, match="already been merged") as refused:
        merge(alice.pk, old.pk, other.pk)
    assert refused.value.refusal.rule == Rule.MERGED


def test_a_report_that_was_being_worked_on_begins_again(alice: User, old: Host, new: Host) -> None:
    before = dict(HostLedger.objects.values_list("host_id", "contacts"))
    merge(alice.pk, old.pk, new.pk)
    after = dict(HostLedger.objects.values_list("host_id", "contacts"))
    assert all(after[pk] > before[pk] for pk in (old.pk, new.pk))


# --- refusals -----------------------------------------------------------------------------------------


def test_overlapping_lifetimes_are_refused_with_both_ranges(alice: User, old: Host) -> None:
    other = make_host(alice, "studio", "2026-02-09", "2026-03-20")
    with pytest.raises(MergeRefused) as refused:
        merge(alice.pk, old.pk, other.pk)
    assert refused.value.refusal.rule == Rule.LIFETIMES
    assert "attic from 1 Jan 2026, 00:00 UTC to 10 Feb 2026, 00:00 UTC" in str(refused.value)
    assert "studio from 9 Feb 2026, 00:00 UTC to 20 Mar 2026, 00:00 UTC" in str(refused.value)


def test_one_that_was_seen_once_within_the_others_lifetime_overlaps(alice: User, old: Host) -> None:
    assert rule_of(alice, old, make_host(alice, "once", "2026-01-20", "2026-01-20")) == Rule.LIFETIMES


def test_lifetimes_that_touch_do_not_overlap(alice: User, old: Host, new: Host) -> None:
    assert old.last_contact_at == new.created_at
    assert merge(alice.pk, old.pk, new.pk) == new


def test_what_was_merged_before_counts_for_the_lifetime_but_the_gap_does_not(alice: User, old: Host) -> None:
    newest = make_host(alice, "attic", "2026-06-01", "2026-07-01")
    merge(alice.pk, old.pk, newest.pk)
    between = make_host(alice, "attic", "2026-03-01", "2026-04-01")
    during = make_host(alice, "attic", "2026-01-15", "2026-01-16")
    with pytest.raises(MergeRefused) as refused:
        merge(alice.pk, during.pk, newest.pk)
    assert refused.value.refusal.rule == Rule.LIFETIMES
    assert merge(alice.pk, between.pk, newest.pk) == newest


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"os_name": "Microsoft Windows 11"}, Rule.SYSTEM),
        ({"os_name": ""}, Rule.SYSTEM),
        ({"p_model": "Core i7"}, Rule.PROCESSOR),
        ({"p_vendor": "AuthenticAMD"}, Rule.PROCESSOR),
        ({"p_vendor": "", "p_model": ""}, Rule.PROCESSOR),
    ],
)
def test_another_system_or_processor_is_another_computer(
    alice: User, old: Host, changed: dict[str, str], rule: Rule
) -> None:
    assert rule_of(alice, old, make_host(alice, "other", "2026-03-01", "2026-04-01", **changed)) == rule


def test_an_upgrade_of_the_system_is_the_same_computer(alice: User) -> None:
    ten = make_host(alice, "pc", "2026-01-01", "2026-02-01", os_name="Microsoft Windows 10")
    eleven = make_host(alice, "pc", "2026-03-01", "2026-04-01", os_name="Microsoft Windows 11")
    assert merge(alice.pk, ten.pk, eleven.pk) == eleven


def test_other_peoples_computers_and_oneself_are_refused(alice: User, bob: User, old: Host, new: Host) -> None:
    bobs = make_host(bob, "attic", "2026-03-21", "2026-04-20")
    assert rule_of(alice, old, bobs) == Rule.UNKNOWN
    assert rule_of(bob, old, new) == Rule.UNKNOWN
    assert rule_of(alice, old, old) == Rule.SELF
    assert not HostLedger.objects.filter(host=bobs, contacts__gt=0).exists()


# --- preview ------------------------------------------------------------------------------------------


def test_the_preview_says_what_will_be_joined(alice: User, old: Host, new: Host) -> None:
    project, other = make_project(), make_project()
    credit(old, project, "2026-01-30", (1_000_000, 2_000_000, 3, 4, 5, 6))
    credit(old, project, "2026-01-31", (1, 0, 0, 0, 0, 0))
    credit(old, other, "2026-01-31", (1, 1, 1, 1, 1, 1))
    HostProject.objects.filter(project=other).update(pending=[3, 4, 5, 6, 7, 8])
    make_note(old, "reset", "2026-01-15")
    ClientKey.objects.create(user=alice, host=old, origin="attach", key_hash=b"1" * 32)
    seen = preview(alice.pk, new.pk, old.pk)
    assert (seen.older, seen.newer, seen.days, seen.projects) == (old, new, 2, 2)
    # 1,000,000 + 1 + 1 and 2,000,000 + 1; 3 + 1 + 4 + 1; 5 + 1 + 6 + 1; waiting: 3 + 4
    assert (seen.credit, seen.run_time, seen.jobs, seen.waiting_credit) == (3_000_003, 9, 13, 7)
    assert (seen.notes, seen.keys) == (1, 1)
    assert Host.objects.filter(merged_into=None).count() == 2


def test_candidates_that_can_be_merged_come_first_and_the_others_say_why(alice: User, old: Host) -> None:
    make_host(alice, "A laptop", "2026-01-05", "2026-02-01")
    fits = make_host(alice, "Tower", "2026-02-11", "2026-03-01")
    merge_candidates = candidates(old)
    assert [c.host.name for c in merge_candidates] == ["Tower", "A laptop"]
    assert merge_candidates[0].host == fits and merge_candidates[0].refusal is None
    assert merge_candidates[1].refusal is not None and merge_candidates[1].refusal.rule == Rule.LIFETIMES


# --- properties, on the real database -----------------------------------------------------------------

six = st.lists(st.integers(0, 10**15), min_size=6, max_size=6)
rows = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 2), st.integers(1, 28), six), max_size=8)


def sums(project: Project) -> tuple[list[int], list[list[int]]]:
    """(sum of the days, [credited, pending, dropped] over all records) of one project."""
    days = [sum(d[i] for d in Day.objects.filter(project=project).values_list(*COLUMNS)) for i in range(6)]
    totals = list(HostProject.objects.filter(project=project).values_list("credited", "pending", "dropped"))
    return days, [[sum(int(t[part][i]) for t in totals) for i in range(6)] for part in range(3)]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows, waiting=st.lists(st.tuples(six, six), min_size=6, max_size=6), flip=st.booleans())
def test_sums_of_days_and_totals_stay_and_agree(
    alice: User, rows: list[tuple[int, int, int, list[int]]], waiting: list[tuple[list[int], list[int]]], flip: bool
) -> None:
    hosts = [
        make_host(alice, "pc", "2026-01-01", "2026-02-10"),
        make_host(alice, "pc", "2026-02-10", "2026-03-20"),
    ]
    projects = [make_project() for _ in range(3)]
    seen = set()
    for host, project, day, amounts in rows:
        if (host, project, day) not in seen:
            credit(hosts[host], projects[project], f"2026-02-{day:02}", amounts)
            seen.add((host, project, day))
    for row, (pending, dropped) in zip(HostProject.objects.filter(host__in=hosts), waiting, strict=False):
        HostProject.objects.filter(pk=row.pk).update(pending=pending, dropped=dropped)
    before = [sums(project) for project in projects]
    a, b = reversed(hosts) if flip else hosts
    merged_host = merge(alice.pk, a.pk, b.pk)
    assert [sums(project) for project in projects] == before
    assert all(days == totals[0] for days, totals in before)
    assert not Day.objects.filter(host=hosts[0]).exists() and not HostProject.objects.filter(host=hosts[0]).exists()
    assert merged_host == hosts[1]


@pytest.fixture
def closed_connections() -> Iterator[list[threading.Thread]]:
    threads: list[threading.Thread] = []
    yield threads
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_merges_at_once_in_all_directions_end_in_one_record(closed_connections: list[threading.Thread]) -> None:
    owner = User.objects.create_user("many@example.org", "a long password")
    project = make_project()
    hosts = [make_host(owner, "pc", f"2026-0{m}-01", f"2026-0{m}-20") for m in range(1, 6)]
    for month, host in enumerate(hosts, 1):
        credit(host, project, f"2026-0{month}-05", (1, 10, 100, 1000, 1, 2))
    barrier = threading.Barrier(8)
    failures: list[Exception] = []

    def work(a: Host, b: Host) -> None:
        try:
            barrier.wait(timeout=20)
            merge(owner.pk, a.pk, b.pk)
        except MergeRefused:
            pass  # the other thread was faster: one of the two is part of a third one by now
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    for a, b in [(0, 4), (4, 0), (1, 4), (4, 1), (2, 3), (3, 2), (3, 4), (4, 2)]:
        thread = threading.Thread(target=work, args=(hosts[a], hosts[b]), daemon=True)
        closed_connections.append(thread)
        thread.start()
    for thread in closed_connections:
        thread.join(timeout=30)
    assert failures == []
    # five times each amount, wherever it is now; days and totals agree
    assert sums(project) == ([5, 50, 500, 5000, 5, 10], [[5, 50, 500, 5000, 5, 10], [0] * 6, [0] * 6])
    # Whatever the order, each older record reached the newest one, by itself or with another.
    assert [host.merged_into for host in Host.objects.order_by("created_at")] == [*[hosts[4]] * 4, None]
    assert HostProject.objects.get().host == hosts[4]


def test_what_projects_granted_follows(alice: User, old: Host, new: Host) -> None:
    project = make_project()
    granted(old, project, 17, {"2026-01-31": 5, "2026-02-10": 7})
    granted(new, project, 18, {"2026-02-10": 10})
    merge(alice.pk, old.pk, new.pk)
    days = GrantedDay.objects.order_by("day").values_list("host_id", "day__day", "credit")
    assert list(days) == [(new.pk, 31, 5), (new.pk, 10, 17)]  # 7 + 10
    assert set(GrantedTotal.objects.values_list("project_host_id", "host_id")) == {(17, new.pk), (18, new.pk)}


def test_a_file_that_waits_to_be_made_has_the_days_of_the_record_in_use(alice: User, old: Host, new: Host) -> None:
    """Asked for the older record alone, which has no days any more. One that is being made begins again."""
    project = make_project()
    credit(old, project, "2026-01-31", (1, 2, 3, 4, 5, 6))
    day_range = DayRange(dt.date(2026, 1, 1), dt.date(2026, 3, 1), host_id=old.pk)
    waiting = exports.ask(alice, DataCopy.Content.CSV, day_range)
    merge(alice.pk, old.pk, new.pk)
    exports.make(waiting.pk)
    assert rows_of(waiting) == 1


def test_a_file_that_is_being_made_while_its_computer_is_merged_begins_again(alice: User, old: Host, new: Host) -> None:
    credit(old, make_project(), "2026-01-31", (1, 2, 3, 4, 5, 6))
    day_range = DayRange(dt.date(2026, 1, 1), dt.date(2026, 3, 1), host_id=old.pk)
    copy = exports.ask(alice, DataCopy.Content.CSV, day_range)
    written: list[int | None] = []

    def write(copy: DataCopy, file: IO[bytes]) -> None:
        if not written:
            merge(alice.pk, old.pk, new.pk)
        written.append(copy.only_host)
        exports.write(copy, file)

    made_files.make(copy.pk, write)
    assert written == [old.pk, new.pk] and rows_of(copy) == 1


def rows_of(copy: DataCopy) -> int:
    """Of the CSV file, without its head."""
    copy.refresh_from_db()
    with zipfile.ZipFile(io.BytesIO(b"".join(made_files.read_parts(copy)))) as archive:
        return len(archive.read(archive.namelist()[0]).splitlines()) - 1
