"""What clients report, as it is and as it should never be: each line is something that a deployed system got wrong."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from django.conf import settings as site
from django.utils import timezone

from accounting.engine.amounts import MICRO
from accounting.engine.states import DayFlag
from accounting.models import Day, HostProject, Note, Project
from accounting.rpc import catalogue
from portal.languages.messages import Message
from portal.models import ClientKey, Host, User
from tests.support.am_rpc import (
    HOUR,
    START,
    answer,
    attach,
    call,
    credited,
    host_of,
    hours_credited,
    hours_pass,
    kinds_noted,
    make_computer,
    post,
    row_of,
    sync,
    token_of,
    with_total,
    work,
)
from tools.simulation.client import Attachment


def test_honest_work_is_credited_in_full(alice: User, projects: list[Project]) -> None:
    alpha, beta, _ = projects
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 30, jobs=3)
    work(computer, beta, 10, jobs=1)
    sync(computer)
    # 30 h of 0.01 credits a second are 1,080 credits.
    assert credited(computer, alpha) == (1_080 * MICRO, 0, 30 * 3600 * MICRO, 0, 3, 0)
    assert credited(computer, beta) == (360 * MICRO, 0, 10 * 3600 * MICRO, 0, 1, 0)
    assert kinds_noted(computer) == []


def test_the_same_message_again_credits_nothing(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 10)
    message = computer.request(time.time())
    for _ in range(5):
        assert post(message).error[0] == 0
    assert hours_credited(computer, alpha) == 10


def test_an_old_total_that_comes_back_after_a_lower_one_is_not_credited_again(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 20)
    work(computer, alpha, 70)
    sync(computer)
    old = list(computer.projects[alpha.master_url].totals)
    computer.projects[alpha.master_url].totals = [0] * 6
    hours_pass(computer, 1)
    sync(computer)
    computer.projects[alpha.master_url].totals = old
    hours_pass(computer, 10)
    sync(computer)
    # 70 h in at most 40 h + 2 min × 4 processors: not possible, so the old total has come back.
    assert hours_credited(computer, alpha) == 70
    assert kinds_noted(computer) == ["reset", "returned"]


@pytest.mark.parametrize("text", [b"-5", b"", b"text", b"0x10", b"1e400", b"1e300", b"1e15", b"1,5"])
@pytest.mark.parametrize("tag", ["cpu_time", "cpu_ec"])
def test_what_is_no_total_is_skipped_and_the_next_true_one_counts_in_full(
    tag: str, text: bytes, alice: User, projects: list[Project]
) -> None:
    alpha, beta, _ = projects
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 10)
    sync(computer)
    work(computer, alpha, 10)
    work(computer, beta, 5)
    reply = post(with_total(computer.request(time.time()), alpha, tag, text))
    assert reply.error == (0, "")
    assert hours_credited(computer, alpha) == 10
    # The project beside it is not concerned.
    assert hours_credited(computer, beta) == 5
    note = Note.objects.get(host=host_of(computer))
    assert (note.kind, note.project, Message.from_packed(note.detail).args) == ("invalid", alpha, {"kind": tag})
    assert any("Alpha" in message for message in reply.messages)
    sync(computer)
    assert hours_credited(computer, alpha) == 20


@pytest.mark.parametrize("text", [b"99999999999", b"2147483648", b"-1", b"1.5", b"nan"])
def test_impossible_numbers_of_jobs_are_skipped(text: bytes, alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 1, jobs=2)
    post(with_total(computer.request(time.time()), alpha, "njobs_success", text))
    # An hour's 36 credits count at once.
    assert credited(computer, alpha) == (36 * MICRO, 0, 3600 * MICRO, 0, 0, 0)
    assert kinds_noted(computer) == ["invalid"]
    sync(computer)
    assert credited(computer, alpha) == (36 * MICRO, 0, 3600 * MICRO, 0, 2, 0)


def test_a_new_host_with_old_totals_starts_from_them(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    old = Attachment(alpha.master_url, managed=False, totals=[0, 0, 9 * 10**12, 0, 4_999, 0])
    computer.projects[alpha.master_url] = old
    computer.dynamic = True
    sync(computer)
    assert credited(computer, alpha) == (0,) * 6
    hours_pass(computer, 1)
    work(computer, alpha, 1, jobs=1)
    sync(computer)
    assert credited(computer, alpha) == (36 * MICRO, 0, 3600 * MICRO, 0, 1, 0)
    assert kinds_noted(computer) == ["baseline"]


def test_a_client_that_learns_of_us_starts_from_what_it_has(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    computer.projects[alpha.master_url] = Attachment(alpha.master_url, managed=False, totals=[0, 0, 10**13, 0, 50, 0])
    # The first request has no totals yet: the client learns from the reply that it is to send them.
    sync(computer)
    hours_pass(computer, 5)
    sync(computer)
    assert credited(computer, alpha) == (0,) * 6


def test_years_of_work_that_a_known_host_brings_along_are_not_credited(alice: User, projects: list[Project]) -> None:
    alpha, beta, gamma = projects
    alice.user_projects.create(project=alpha, is_chosen=True)
    computer = attach(alice)
    hours_pass(computer, 720)
    sync(computer)
    years = [10**13, 0, 10**15, 0, 4_000, 0]
    # We never offered Beta: its owner attached it by hand.
    computer.projects[beta.master_url] = Attachment(beta.master_url, managed=False, totals=years)
    sync(computer)
    assert credited(computer, beta) == (0,) * 6
    assert kinds_noted(computer) == ["baseline"]
    assert gamma.master_url not in computer.projects


def test_years_claimed_for_a_project_that_we_offered_fit_into_what_the_computer_can_do(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 2)
    computer.projects[alpha.master_url].totals = [10**13, 0, 10**15, 0, 4_000, 0]
    sync(computer)
    # Four processors in the two hours since the attach (and the moment that the test takes).
    assert 8 <= hours_credited(computer, alpha) < 8.1
    # Most jobs: one a second and processor.
    assert credited(computer, alpha)[4] == 4_000
    assert "dropped" in kinds_noted(computer)
    # One day of four processors may wait, no more.
    assert row_of(computer, alpha).pending[2] == 4 * 86_400 * MICRO


def test_three_projects_at_the_maximum_get_one_computers_maximum(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 6)
    for project in projects:
        work(computer, project, 24)
    sync(computer)
    assert 24 <= hours_credited(computer, *projects) < 24.1
    shares = [hours_credited(computer, project) for project in projects]
    assert max(shares) - min(shares) < 1e-6


def test_work_reported_a_second_after_the_last_report_waits_and_is_paid(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    work(computer, alpha, 15_000 / 3600)
    sync(computer)
    assert hours_credited(computer, alpha) < 0.1
    hours_pass(computer, 2)
    sync(computer)
    assert credited(computer, alpha)[2] == 15_000 * MICRO
    assert kinds_noted(computer) == []
    assert Day.objects.get(host=host_of(computer), project=alpha).flags & DayFlag.PENDING_PAID


def test_work_after_thirty_idle_days_is_todays(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 30 * 24)
    work(computer, alpha, 50)
    before = timezone.now().date()
    sync(computer)
    days = set(Day.objects.filter(host=host_of(computer)).values_list("day", flat=True))
    assert days and days <= {before, timezone.now().date()}
    assert hours_credited(computer, alpha) == 50


def test_a_url_without_slashes_is_nobodys(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 1)
    host = alpha.master_url.removeprefix("https://")
    for url in (host, "https:" + host, "%", "https://%", alpha.master_url + "%", "https://alpha.example.org/"):
        message = computer.request(time.time()).replace(f">{alpha.master_url}<".encode(), f">{url}<".encode())
        assert post(message).error[0] == 0
    assert credited(computer, alpha) == (0,) * 6


def test_a_url_is_known_in_any_spelling_that_clients_make_canonical(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    sync(computer)
    for spelling in ("HTTPS://Alpha.Example.ORG/science/", "https://alpha.example.org//science"):
        work(computer, alpha, 1)
        post(computer.request(time.time()).replace(f">{alpha.master_url}<".encode(), f">{spelling}<".encode()))
    assert hours_credited(computer, alpha) == 2


def test_a_project_named_twice_counts_once(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 1)
    message = computer.request(time.time())
    start = message.index(b"   <project>")
    end = message.index(b"   </project>\n", start) + len(b"   </project>\n")
    twice = message[:end] + message[start:end] + message[end:]
    assert post(twice).error[0] == 0
    assert hours_credited(computer, alpha) == 1


def test_a_speed_that_was_never_measured_marks_the_day(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice, p_fpops=1_000_000_000)
    hours_pass(computer, 10)
    work(computer, alpha, 1)
    sync(computer)
    assert Day.objects.get(host=host_of(computer), project=alpha).flags == DayFlag.SPEED_UNKNOWN


def test_a_faster_processor_is_believed_from_the_report_that_brings_it(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    computer.ncpus = 8
    work(computer, alpha, 80)
    sync(computer)
    assert host_of(computer).ncpus == 8
    # The larger of old and new hardware bounds the time between.
    assert hours_credited(computer, alpha) == 80


def test_notes_of_a_day_are_counted_together(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    for _ in range(3):
        post(with_total(computer.request(time.time()), alpha, "cpu_time", b"nan"))
    note = Note.objects.get(host=host_of(computer))
    assert note.count == 3
    assert note.last_at > note.first_at


def test_a_retired_computer_that_reports_is_back(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    Host.objects.update(retired_at=timezone.now())
    sync(computer)
    host = host_of(computer)
    assert host.retired_at is None
    assert timezone.now() - host.last_contact_at < dt.timedelta(minutes=1)


def test_a_record_that_was_merged_goes_on_in_the_other(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    old, new = attach(alice, "old"), attach(alice, "new", p_model="Another CPU")
    hours_pass(old, 5)
    work(old, alpha, 5)
    sync(old)
    kept = host_of(new)
    Host.objects.filter(pk=host_of(old).pk).update(merged_into=kept)
    before = old.opaque
    sync(old)
    assert old.opaque != before
    assert token_of(old) == kept.token
    # Its totals are not the other record's: they count from here.
    assert not HostProject.objects.get(host=kept, project=alpha).credited[2]


def test_work_before_a_login_by_password_counts(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 1)
    work(computer, alpha, 100 / 3600)
    sync(computer)
    ClientKey.objects.update(revoked_at=timezone.now())
    hours_pass(computer, 1)
    work(computer, alpha, 1_000 / 3600)
    assert post(computer.request(time.time())).error[0] == -155
    computer.authenticator = computer.opaque = ""
    sync(computer)
    # 100 s and 1,000 s, by hand. It was 100 s.
    assert credited(computer, alpha)[2] == 1_100 * MICRO
    assert kinds_noted(computer) == []


def test_two_copies_that_take_turns_below_older_totals_are_credited_once(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice, ncpus=64)
    for secs in (10_000, *(0, 4_000) * 3, 1_500, 4_000, 0, 1_500):
        hours_pass(computer, 1)
        computer.projects[alpha.master_url].totals = [0, 0, secs * MICRO, 0, 0, 0]
        sync(computer)
    # 10,000 s, and 4,000 s of the one copy. Another one has 1,500 s. It was 26,000 s.
    assert credited(computer, alpha)[2] == 14_000 * MICRO
    (row,) = HostProject.objects.filter(project=alpha)
    assert [int(totals[2]) // MICRO for totals in row.earlier] == [1_500, 4_000, 10_000]


def test_a_client_that_was_reset_is_asked_back_by_the_nearest_of_its_older_totals(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = attach(alice)
    for secs in (36_000, 0, 9_000, 0):
        hours_pass(computer, 3)
        computer.projects[alpha.master_url].totals = [0, 0, secs * MICRO, 0, 0, 0]
        reply = sync(computer)
    # Four processors do a third of 9,000 s in 750 s, and one of 36,000 s in 3,000 s.
    assert reply.repeat_secs == 750


def test_a_client_that_was_reset_and_does_nothing_is_asked_less_and_less(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    now = START
    for secs in (0, 1_200, 0):
        if computer.projects:
            computer.projects[alpha.master_url].totals = [0, 0, secs * MICRO, 0, 0, 0]
        asked = [call(computer, now).repeat_secs]
        now += 3 * HOUR
    now -= 3 * HOUR
    for _ in range(9):
        now += dt.timedelta(seconds=asked[-1])
        asked.append(call(computer, now).repeat_secs)
    # Four processors do 1,200 s in no time: the shortest interval, and twice as long each time, up to the usual one.
    assert asked == [120, 240, 480, 960, 1_920, 3_840, 7_680, 15_360, 21_600, 21_600]


def test_a_client_that_was_reset_is_asked_back_before_it_can_have_done_all_again(
    alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = attach(alice)
    sync(computer)
    row = computer.projects[alpha.master_url]
    hours_pass(computer, 3)
    row.totals = [0, 0, 36_000 * MICRO, 0, 0, 0]
    usual = sync(computer).repeat_secs
    row.totals = [0, 0, 0, 0, 0, 0]
    hours_pass(computer, 1)
    # It lacks 36,000 s. Four processors do a third of that in 36,000 / 3 / 4 s.
    secs = sync(computer).repeat_secs
    assert secs == 3_000 < usual
    for done, asked in ((12_000, 2_000), (20_000, usual)):
        hours_pass(computer, secs / 3600)
        row.totals = [0, 0, done * MICRO, 0, 0, 0]
        secs = sync(computer).repeat_secs
        # At 12,000 s it lacks 24,000 s. At 20,000 s it is past half of the way.
        assert secs == asked
    hours_pass(computer, 6)
    row.totals = [0, 0, 40_000 * MICRO, 0, 0, 0]
    sync(computer)
    assert credited(computer, alpha)[2] == (36_000 + 40_000) * MICRO
    assert kinds_noted(computer) == ["reset"]


@pytest.mark.parametrize("is_installed_again", [False, True])
def test_a_client_that_is_offered_a_project_again_is_asked_back_soon_and_loses_nothing(
    is_installed_again: bool, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    for minutes in (0, 2, 362):
        call(computer, START + HOUR * minutes / 60)
        work(computer, alpha, 10)
    # It starts from zero: its owner removed the project, or installed BOINC again.
    if is_installed_again:
        computer.authenticator = computer.opaque = ""
        computer.projects.clear()
    else:
        del computer.projects[alpha.master_url]
    now = START + 12 * HOUR
    secs = call(computer, now).repeat_secs
    assert secs == site.AM_REPEAT_SECS_AFTER_ATTACH
    # It comes when it is asked to, and its four processors work for this project all the time.
    while now < START + 24 * HOUR:
        now += dt.timedelta(seconds=secs)
        work(computer, alpha, 4 * secs / 3600)
        secs = call(computer, now).repeat_secs
    # 20 h were reported before, and 4 h an hour since noon.
    worked = (now - START - 12 * HOUR).total_seconds()
    assert hours_credited(computer, alpha) == pytest.approx(20 + 4 * worked / 3600, abs=1e-6)
    assert "returned" not in kinds_noted(computer)


def test_a_reset_client_that_refuses_another_project_is_asked_as_soon(alice: User, projects: list[Project]) -> None:
    alpha, beta, _ = projects
    computer = make_computer(alice)
    for minutes in (0, 2, 362):
        call(computer, START + HOUR * minutes / 60)
        # As if it did not accept the signature of the second project's address
        computer.projects.pop(beta.master_url, None)
        work(computer, alpha, 10)
    computer.projects[alpha.master_url].totals = [0] * 6
    # It lacks 20 h: four processors do a third of that in 20 / 3 / 4 h.
    assert call(computer, START + 12 * HOUR).repeat_secs == 6_000


def test_a_late_message_is_offered_nothing_that_would_not_be_noted(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    call(computer, START)
    del computer.projects[alpha.master_url]
    Project.objects.filter(pk=alpha.pk).update(is_active=False)
    catalogue.forget()
    HostProject.objects.filter(project=alpha).delete()
    call(computer, START + HOUR)
    Project.objects.filter(pk=alpha.pk).update(is_active=True)
    catalogue.forget()
    # The client's clock is set back by ten minutes, and its owner synchronises.
    reply = answer(computer.request((START + HOUR * 5 / 6).timestamp()), START + HOUR * 1.25)
    computer.apply_reply(reply.raw)
    for hour in (3, 5):
        if alpha.master_url in computer.projects:
            work(computer, alpha, 2)
        call(computer, START + hour * HOUR)
    work(computer, alpha, 2)
    call(computer, START + 6 * HOUR)
    # It was attached by a reply that was noted, so all that it did counts.
    assert hours_credited(computer, alpha) == 4
    assert kinds_noted(computer) == []


def test_docker_and_linux_below_windows_are_kept_and_known_again(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    sync(computer)
    host = host_of(computer)
    assert (host.docker_version, host.wsl) == ("", [])
    distro = b"<wsl><distro><distro_name>Ubuntu</distro_name><docker_version>26.1</docker_version></distro></wsl>"
    for inside, version, nlinux in (
        (b"<docker_version>27.3.1</docker_version>", "27.3.1", 0),
        (distro, "", 1),
        (b"", "", 0),
    ):
        message = computer.request(time.time()).replace(b"</host_info>", inside + b"</host_info>")
        assert post(message).error[0] == 0
        host = host_of(computer)
        assert (host.docker_version, len(host.wsl)) == (version, nlinux)
