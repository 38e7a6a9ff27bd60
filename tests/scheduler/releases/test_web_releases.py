"""Versions tested, released and taken back in the browser, and who gets them then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.test import Client

from credit.models import App, AppVersion
from credit.statistics.feeder import feed
from portal.models import User
from scheduler.engine.facts import Version
from scheduler.engine.release_states import ReleaseAction, ReleaseState
from scheduler.models import BetaTest, BetaTester
from scheduler.programs import catalogue
from scheduler.releases import rollout
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.releases import BASE, FIELDS, begin, do, prepared, said, signed_version, state, store
from tests.support.scheduler_clients import Computer, computer_of, gpu
from tests.support.settings_changes import last_change
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db


def ready(njobs: int = 30) -> None:
    app = App.objects.get(name="alpine")
    for _ in range(njobs):
        make_result(make_workunit(app, output_files=[]))
    catalogue.forget()


def num_sent(computer: Computer) -> int:
    """The number of the version that came with a job; 0 if none came."""
    catalogue.forget()
    reply = computer.ask(0, 1)
    numbers = [part.split("</version_num>")[0] for part in reply.split("<version_num>")[1:]]
    return int(numbers[-1]) if numbers and "<result>" in reply else 0


def test_a_tested_version_reaches_only_computers_of_chosen_people(
    browser: Client, operator: User, alice: User, bob: User
) -> None:
    BetaTester.objects.create(user=alice)
    version = signed_version(browser, "test")
    ready()
    computers = {user.name: computer_of(user) for user in (operator, alice, bob)}

    def sent() -> dict[str, int]:
        return {name: num_sent(computer) for name, computer in computers.items()}

    assert sent() == {"Operator": 101, "Alice": 0, "Bob": 0}
    do(browser, version, "withdraw")
    assert sent() == {"Operator": 0, "Alice": 0, "Bob": 0}
    do(browser, version, "test", with_volunteers="on")
    assert sent() == {"Operator": 101, "Alice": 101, "Bob": 0}
    do(browser, version, "release")
    assert sent() == {"Operator": 101, "Alice": 101, "Bob": 101}


@pytest.mark.parametrize("ended", ["withdraw", "disagree"])
def test_a_lost_job_does_not_bring_back_what_the_computer_should_not_have(
    browser: Client, alice: User, ended: str
) -> None:
    BetaTester.objects.create(user=alice)
    version = signed_version(browser, "test", with_volunteers="on")
    do(browser, version, "withdraw")
    do(browser, version, "test", with_volunteers="on")
    ready(1)
    computer = computer_of(alice)
    assert num_sent(computer) == 101
    if ended == "withdraw":
        do(browser, version, "withdraw")
    else:
        BetaTester.objects.all().delete()
    computer.jobs.clear()  # the reply never arrived
    assert num_sent(computer) == 0


def test_others_keep_the_version_before_until_the_new_one_is_released(
    browser: Client, operator: User, bob: User
) -> None:
    signed_version(browser, "release")
    second = signed_version(browser, "test", version_num=102)
    ready()
    own, other = computer_of(operator), computer_of(bob)
    assert (num_sent(own), num_sent(other)) == (102, 101)
    do(browser, second, "release")
    assert num_sent(other) == 102


def test_a_roll_back_is_one_step(browser: Client, bob: User) -> None:
    first = signed_version(browser, "release")
    second = signed_version(browser, "release", version_num=102)
    do(browser, first, "withdraw")
    ready()
    computer = computer_of(bob)
    assert num_sent(computer) == 102
    assert "Saved" in do(browser, second, "roll_back")
    assert (state(first), state(second)) == (ReleaseState.RELEASED, ReleaseState.WITHDRAWN)
    assert num_sent(computer) == 101
    assert "no older version to go back to" in do(browser, first, "roll_back")
    assert state(first) == ReleaseState.RELEASED


def test_a_roll_back_does_not_bring_back_what_was_withdrawn_before(browser: Client) -> None:
    first, second, third = (signed_version(browser, "release", version_num=num) for num in (101, 102, 103))
    do(browser, second, "roll_back")
    do(browser, third, "roll_back")
    assert [state(each).name for each in (first, second, third)] == ["RELEASED", "WITHDRAWN", "WITHDRAWN"]


def test_a_roll_back_never_sends_a_test_that_failed_to_all(browser: Client) -> None:
    tested = signed_version(browser, "test")
    do(browser, tested, "withdraw")
    second = signed_version(browser, "release", version_num=102)
    assert "no older version to go back to" in do(browser, second, "roll_back")
    assert (state(tested), state(second)) == (ReleaseState.WITHDRAWN, ReleaseState.RELEASED)


def test_what_is_done_with_a_version_is_in_the_log_of_changes(browser: Client, operator: User) -> None:
    first = signed_version(browser, "release")
    second = signed_version(browser, "test", version_num=102)
    do(browser, second, "release")
    do(browser, second, "test")  # not possible, so not in the log
    do(browser, second, "roll_back")
    log = LogEntry.objects.get(content_type__model="appversion")
    assert (log.user, log.object_id) == (operator, str(second.pk))
    assert log.change_message == f"{second} is released to all computers."
    change = last_change()
    assert (change.actor, change.object_id, change.reason) == (operator, second.pk, "a test")
    assert change.changes == {"is_deprecated": [False, True]}
    assert state(first) == ReleaseState.RELEASED


def test_public_pages_tell_versions_in_test_from_released_ones(browser: Client) -> None:
    signed_version(browser, "release")
    released_at = App.objects.get().versions.get().created_at
    tested = signed_version(browser, "test", version_num=102)
    page = said(browser.get("/apps/alpine/"))
    assert page.count("in test</span>") == 1 and "only testers’ computers get it" in page
    assert browser.get("/apps/").context["apps"][0]["released_at"] == released_at
    do(browser, tested, "release")
    assert "in test</span>" not in said(browser.get("/apps/alpine/"))
    assert browser.get("/apps/").context["apps"][0]["released_at"] > released_at


def test_a_tested_version_counts_for_scales_like_any_other_so_its_release_changes_no_credit(operator: User) -> None:
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=2.0)
    tested = make_version(app, plan_class="mt", pfc_n=300, pfc_avg=4.0)
    BetaTest.objects.create(app_version=tested)
    before = [list(app.versions.order_by("pk").values_list("pfc_scale", flat=True)) for _ in [feed(NOON)]]
    # (100 * 2 + 300 * 4) / 400 = 3.5
    assert before == [[1.75, 0.875]]
    rollout.act(tested, ReleaseAction.RELEASE, operator, NOON)
    feed(NOON)
    assert list(app.versions.order_by("pk").values_list("pfc_scale", flat=True)) == before[0]


# --- the step before what may change credit ---------------------------------------------------------------------------


def test_a_draft_that_was_stored_is_not_said_to_be_released_by_a_second_click(browser: Client) -> None:
    draft = prepared(browser)
    browser.post(f"{BASE}{draft.pk}/sign/")
    store(browser, draft, "test")
    said_now = store(browser, draft, "release")
    assert "is released to all" not in said_now and "is already stored" in said_now
    assert state(AppVersion.objects.get()) == ReleaseState.BETA


def test_the_page_of_all_versions_looks_at_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    for number in range(20):
        make_version(app, version_num=100 + number)
    looked_at: list[int] = []
    facts = catalogue.version_facts

    def look(row: AppVersion) -> Version:
        looked_at.append(row.pk)
        return facts(row)

    monkeypatch.setattr(catalogue, "version_facts", look)
    rows = {row.version.version_num: row.before for row in rollout.read_versions()}
    assert rows[100] is None and all(rows[number].version_num == number - 1 for number in range(101, 120))  # type: ignore[union-attr]  # there is one
    assert len(looked_at) == 20


@pytest.mark.django_db(transaction=True)
def test_no_request_that_has_sent_a_version_is_waited_for(operator: User) -> None:
    """Requests hold the rows of versions that they refer to (FOR KEY SHARE), in an order of their own."""
    version = make_version(make_app())

    def withdraw() -> ReleaseState:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '1s'")
            return rollout.act(version, ReleaseAction.WITHDRAW, operator, NOON)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM credit_appversion WHERE id = %s FOR KEY SHARE", [version.pk])
        assert other.submit(withdraw).result() == ReleaseState.WITHDRAWN


def test_what_a_state_does_not_allow_changes_nothing(browser: Client) -> None:
    version = signed_version(browser, "release")
    assert "the state is released" in do(browser, version, "test")
    assert browser.post(f"{BASE}versions/{version.pk}/explode/").status_code == 404
    assert browser.get(f"{BASE}versions/{version.pk}/withdraw/").status_code == 404
    assert state(version) == ReleaseState.RELEASED


def test_volunteers_agree_on_a_page_of_their_own(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post("/project/testing/", {"agrees": "on"})
    assert BetaTester.objects.get().user == alice
    assert "checked" in said(client.get("/project/testing/"))
    client.post("/project/testing/")
    assert not BetaTester.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_a_tested_version_costs_a_request_no_statement(alice: User) -> None:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    BetaTester.objects.create(user=alice)
    tested = make_version(app, version_num=101)
    BetaTest.objects.create(app_version=tested, with_volunteers=True)
    catalogue.forget()
    for _ in range(30):
        make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice, ncpus=16)
    computer.ask(0, 1)
    computer.ask(1)
    # As without: read; lock computer and jobs, write
    assert statements(lambda: computer.ask(0, 1)) == 3


# --- who would get it -------------------------------------------------------------------------------------------------


def test_the_page_says_how_many_active_computers_fit(browser: Client, operator: User, alice: User, bob: User) -> None:
    BetaTester.objects.create(user=bob)
    card = gpu("coproc_cuda", count=1, totalGlobalMem=2**32, peak_flops=1e12, drvVersion=53504)
    for user, fields in (
        (operator, {"coprocs": card}),
        (alice, {}),
        (bob, {"coprocs": card}),
        (alice, {"platform": "windows_x86_64", "coprocs": card}),
    ):
        computer_of(user, **fields).ask(0)
    computer_of(bob, coprocs=card).ask(0, core_client_major_version=6, core_client_minor_version=2)
    draft = begin(browser, processor_type="NVIDIA", gpu_usage="1", avg_ncpus="0.1", min_gpu_ram_bytes=str(2**31))
    facts = browser.get(f"{BASE}{draft.pk}/change/").context["audience"]
    assert (facts.nactive, facts.nfit, facts.nothers, facts.nunfit, facts.ntoo_old) == (5, 2, 1, 1, 1)
    assert (facts.nown, facts.nvolunteers, facts.clients) == (1, 1, [("7.20", 2)])
    # With more memory than these cards have nobody is left.
    browser.post(
        f"{BASE}{draft.pk}/change/",
        {**FIELDS, "processor_type": "NVIDIA", "gpu_usage": "1", "min_gpu_ram_bytes": str(2**33)},
    )
    assert browser.get(f"{BASE}{draft.pk}/change/").context["audience"].nfit == 0
