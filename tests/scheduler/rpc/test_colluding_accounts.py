"""Two accounts that want the same workunits: who gets copies from the scheduler, and what invented outputs earn."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from credit.models import App, Result, UserCredit, ValidateState, Workunit
from credit.validator.passes import run_pass
from portal.models import ClientKey, User
from scheduler.lifecycle import transitioner
from scheduler.programs import catalogue
from scheduler.ready_jobs import job_cache
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, key_of, messages, result_xml
from tests.support.work_scenes import delivered

pytestmark = pytest.mark.django_db
OUTPUTS = [{"open_name": "out", "max_nbytes": 100}]
JOB = {"fpops_est": 7.2e12, "fpops_bound": 1e15, "output_files": OUTPUTS, "delay_bound_secs": 86_400}
ONE_BLOCK = ("81.2.69.1", "81.2.69.200")
TWO_BLOCKS = ("81.2.69.1", "81.2.70.1")


@pytest.fixture
def app(db: None) -> App:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.1)")
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


def computers(*addresses: str) -> list[Computer]:
    """Each of an account of its own, whose key is a month old, and known to the scheduler."""
    catalogue.forget()
    made = []
    for number, address in enumerate(addresses):
        user = User.objects.create_user(f"{address}-{number}@example.org", "secret", name=f"Volunteer {number}")
        made.append(Computer(key_of(user), ncpus=16, address=address))
    ClientKey.objects.update(created_at=NOON - dt.timedelta(days=30))
    for computer in made:
        computer.ask(now=NOON - dt.timedelta(hours=1))
    return made


def workunits(computer: Computer) -> set[int]:
    return set(Result.objects.filter(name__in=computer.jobs).values_list("workunit_id", flat=True))


@pytest.fixture(params=[True, False], ids=["from ready jobs", "from the queue"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(job_cache, "has_jobs", lambda known: False)
        monkeypatch.setattr(job_cache.JobCache, "take", lambda *args: [])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("setting", "addresses", "first", "then"),
    [
        # The queue is 1a 1b 2a 2b, and the first computer gets 1a. The second one asks for a job twice.
        ("prefer", ONE_BLOCK, "2", "1"),
        ("strict", ONE_BLOCK, "2", None),
        ("off", ONE_BLOCK, "1", "2"),
        ("prefer", TWO_BLOCKS, "1", "2"),
        ("strict", TWO_BLOCKS, "1", "2"),
    ],
)
def test_a_copy_goes_to_a_neighbour_of_its_holder_as_the_setting_says(
    app: App, settings: Settings, setting: str, addresses: tuple[str, str], first: str, then: str | None
) -> None:
    settings.SEPARATE_REPLICAS = setting
    for name in ("1", "2"):
        workunit = make_workunit(app, name=name, **JOB)
        for _ in range(2):
            make_result(workunit)
    one, other = computers(*addresses)
    one.ask(0, 1, now=NOON)
    replies = [other.ask(0, 1, now=NOON + dt.timedelta(seconds=secs)) for secs in (10, 20)]
    assert one.jobs == ["1_0"]
    assert [job[0] for job in other.jobs] == [first] if then is None else [first, then]
    if then is None:
        assert any("being sent to others" in message for message in messages(replies[1]))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("days", "njobs"), [(0.9, 0), (1.1, 1)])
def test_a_strict_site_gives_a_neighbour_the_copy_when_the_holder_has_had_another_for_the_delay_bound(
    app: App, settings: Settings, days: float, njobs: int
) -> None:
    settings.SEPARATE_REPLICAS = "strict"
    workunit = make_workunit(app, name="1", **JOB)
    for _ in range(2):
        make_result(workunit)
    one, other = computers(*ONE_BLOCK)
    one.ask(0, 1, now=NOON)
    # The delay bound is a day.
    other.ask(0, 1, now=NOON + dt.timedelta(days=days))
    assert len(other.jobs) == njobs


def submit(app: App, nworkunits: int) -> None:
    Workunit.objects.bulk_create(Workunit(app=app, name=f"w{n}", transition_at=NOON, **JOB) for n in range(nworkunits))
    transitioner.run(NOON)


def in_turn(pair: list[Computer], honest: list[Computer]) -> None:
    """The two ask for 20 jobs each, twice; between them each of the others asks for 4."""
    secs = 0
    for _ in range(2):
        for computer in (pair[0], *honest[:3], pair[1], *honest[3:]):
            secs += 10
            computer.ask(0, 20 if computer in pair else 4, now=NOON + dt.timedelta(seconds=secs))
    assert [len(computer.jobs) for computer in pair] == [40, 40]
    assert all(len(computer.jobs) == 8 for computer in honest)


def invent(pair: list[Computer], common: set[int]) -> None:
    """They report an invented output, the same one, for each workunit that both have, and abort all others."""
    for computer in pair:
        results = Result.objects.filter(name__in=computer.jobs)
        reports = "".join(
            delivered(result.name)
            if result.workunit_id in common
            else result_xml(result.name, state=6, exit_status=-203)
            for result in results
        )
        computer.ask(results=reports, now=NOON + dt.timedelta(hours=1))
    later = NOON + dt.timedelta(hours=2)
    transitioner.run(later)
    run_pass(app_id=Result.objects.earliest("pk").app_id, now=later)


def paid(pair: list[Computer]) -> dict[str, Any]:
    ids = ClientKey.objects.filter(host__in=[computer.hostid for computer in pair]).values("user")
    credits = UserCredit.objects.filter(user__in=ids).values_list("total_credit", flat=True)
    nvalid = Result.objects.filter(user__in=ids, validate_state=ValidateState.VALID).count()
    return {"credit": sum(credits), "nvalid": nvalid}


@pytest.mark.parametrize("nhonest", [0, 5])
@pytest.mark.parametrize(("addresses", "most"), [(ONE_BLOCK, 0), (TWO_BLOCKS, 3)])
def test_two_accounts_that_ask_in_turn_have_no_more_workunits_in_common_than_chance_gives_them(
    app: App, nhonest: int, addresses: tuple[str, str], most: int
) -> None:
    submit(app, 1000)
    pair = computers(*addresses)
    honest = computers(*(f"93.184.{n}.1" for n in range(nhonest)))
    in_turn(pair, honest)
    common = workunits(pair[0]) & workunits(pair[1])
    # 40 × 40 / 2,000 = 0.8 by chance, so more than three would come once in a hundred times; none in one network.
    assert len(common) <= most
    invent(pair, common)
    # 7.2e12 FLOPs are 7.2e12 × 200 / 86,400e9 = 16.7 credits. Before, 40 in common brought 1,300 to the two.
    assert paid(pair) == {"credit": pytest.approx(len(common) * 2 * 7.2e12 * 200 / 86_400e9), "nvalid": 2 * len(common)}
