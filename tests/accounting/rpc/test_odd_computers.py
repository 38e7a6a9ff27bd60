"""Reports of computers whose client or driver says what cannot be: what is credited, and what the owner is told."""

from __future__ import annotations

import datetime as dt
import re
import time
from pathlib import Path
from typing import Final

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from accounting.choosing.sql import LAST_WEEK
from accounting.engine.amounts import MICRO
from accounting.engine.states import DayFlag
from accounting.ledger.models_seen import learn
from accounting.ledger.texts import explain
from accounting.models import Day, HostLedger, HostProject, ModelSpeed, Note, Project
from accounting.projects import signing_key
from accounting.rpc import catalogue
from accounting.rpc.sql import MAX_SPEEDS_NOTED
from portal.models import Host, User
from portal.wire import credentials
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import Reply, post

pytestmark = pytest.mark.django_db

DATA: Final = Path(__file__).parents[2] / "data" / "account_manager"
URL: Final = "https://tidewater.example.org/science/"
DAY: Final = dt.timedelta(days=1)


@pytest.fixture
def tidewater(signing_keys: None) -> Project:
    catalogue.forget()
    return make_project("Tidewater", "1_key", master_url=URL, url_signature=signing_key.sign_url(URL) or "")


class Client:
    """The client whose request is in a file, with another GPU, perhaps. It is attached to the project by its first
    request.
    """

    def __init__(self, case: str, owner: User, **gpu: str) -> None:
        self.request = (DATA / f"{case}.xml").read_bytes()
        for element, text in gpu.items():
            self.request = re.sub(rf"<{element}>[^<]*<".encode(), f"<{element}>{text}<".encode(), self.request)
        password = credentials.client_password_hash(f"{owner.name.lower()}'s secret", owner.email)
        login = f"<name>{owner.email}</name><password_hash>{password}</password_hash>".encode()
        first = re.sub(rb"<project>.*?</project>|<opaque>.*?</opaque>", b"", self.request, flags=re.DOTALL)
        reply = post(first.replace(b"<authenticator>@KEY@</authenticator>", login))
        self.key = reply.text("authenticator")
        [self.token] = re.findall(r"<host>(\w+)</host>", reply.raw.decode())

    def report_after(self, days: float, **totals: str) -> Reply:
        """The client reports the file's totals, but for these, this many days after its last report."""
        moved = HostLedger.objects.filter(host__token=self.token).update(last_at=F("last_at") - days * DAY)
        assert moved == 1
        message = self.request.replace(b"@KEY@", self.key.encode()).replace(b"@HOST@", self.token.encode())
        message = re.sub(rb"<now>[^<]*<", b"<now>%f<" % time.time(), message)
        for kind, text in totals.items():
            message = re.sub(rb"<%b>[^<]*<" % kind.encode(), f"<{kind}>{text}<".encode(), message)
        reply = post(message)
        assert reply.error == (0, "")
        return reply


def booked(project: Project) -> dict[str, float]:
    """What was credited of each kind, in credits, seconds and jobs; the days must have the same."""
    row = HostProject.objects.get(project=project)
    days = Day.objects.filter(project=project)
    kinds = ("cpu_ec", "gpu_ec", "cpu_time", "gpu_time", "njobs_success", "njobs_error")
    assert [int(sum(getattr(day, kind) for day in days)) for kind in kinds] == row.credited
    return {
        kind: amount / (1 if kind.startswith("njobs") else MICRO)
        for kind, amount in zip(kinds, row.credited, strict=True)
    }


@pytest.mark.parametrize("name", ["gpu-credit-nan", "gpu-credit-inf"])
def test_a_sum_that_is_no_number_costs_only_itself_until_it_is_one_again(
    name: str, alice: User, tidewater: Project
) -> None:
    client = Client(name, alice)
    reply = client.report_after(1)
    # 8 CPUs for a day: 691,200 s at 4 GFLOPS, 8 × 800 credits
    assert booked(tidewater) == {
        "cpu_ec": 6_400, "gpu_ec": 0, "cpu_time": 691_200, "gpu_time": 86_400, "njobs_success": 10, "njobs_error": 0,
    }  # fmt: skip
    assert "The sum gpu_ec" in reply.messages[-1] and "Nothing is lost" not in reply.messages[-1]
    # A day later the same again, from a client whose sum can never become right
    again = client.report_after(1, cpu_ec="12800.000000", cpu_time="1382400.000000", gpu_time="172800.000000")
    # It was told, and is told again in another week.
    assert not any("The sum gpu_ec" in message for message in again.messages)
    assert (booked(tidewater)["cpu_ec"], booked(tidewater)["gpu_time"]) == (12_800, 172_800)
    # It was mended: the sum is less than before it broke, which is no reset of the others.
    client.report_after(
        1, cpu_ec="19200", cpu_time="2073600", gpu_ec="7.5", gpu_time="259200", peak_flops="4320000000000"
    )
    assert (booked(tidewater)["cpu_ec"], booked(tidewater)["gpu_ec"]) == (19_200, 0)
    # A quarter of a day more at 4.32 TFLOPS: 0.2 × 4.32e12 / 432e9 = 2 credits a second
    client.report_after(1, cpu_ec="19200", cpu_time="2073600", gpu_ec="43207.5", gpu_time="280800",
                        peak_flops="4320000000000")  # fmt: skip
    assert (booked(tidewater)["gpu_ec"], booked(tidewater)["gpu_time"]) == (43_200, 280_800)
    notes = {note.kind: explain(note, "Tidewater").happened for note in Note.objects.filter(project=tidewater)}
    assert notes == {
        "sum_broken": "The client’s sum of credit for GPU work for Tidewater is not a number.",
        "sum_restarted": "The client’s sum of credit for GPU work for Tidewater is a number again.",
    }


def test_a_total_that_may_yet_be_read_keeps_its_pair_waiting_and_nothing_is_lost(
    alice: User, tidewater: Project
) -> None:
    client = Client("gpu-credit-nan", alice)
    client.report_after(1, gpu_ec="0", cpu_ec="unreadable")
    # The CPUs' time waits for the CPUs' credit, which it is worth; GPUs and jobs do not.
    assert (booked(tidewater)["cpu_time"], booked(tidewater)["gpu_time"]) == (0, 86_400)
    assert booked(tidewater)["njobs_success"] == 10
    client.report_after(1, gpu_ec="0", cpu_ec="12800", cpu_time="1382400")
    assert (booked(tidewater)["cpu_ec"], booked(tidewater)["cpu_time"]) == (12_800, 1_382_400)


def test_a_client_that_multiplies_the_credit_of_its_gpus_is_no_capped_one(alice: User, tidewater: Project) -> None:
    Client("two-gpus-honest", alice).report_after(1)
    # 16 CPUs of 5 GFLOPS: 16 × 1,000. Two GPUs of 12 TFLOPS: 172,800 s × 0.2 × 12e12 / 432e9, and reported twice.
    # A few millionths more are allowed for rounding.
    assert booked(tidewater)["gpu_ec"] == pytest.approx(960_000, abs=1e-5)
    assert booked(tidewater)["cpu_ec"] == 16_000
    day = Day.objects.get(project=tidewater)
    assert day.flags == DayFlag.SEVERAL_GPUS
    note = Note.objects.get()
    assert (note.kind, explain(note).is_loss) == ("several_gpus", False)
    assert float(note.amount) == pytest.approx(960_000 * MICRO, abs=10)
    # From the next day on it counts in the balance of shares, as capped computers do not.
    midnight = dt.datetime.combine(day.day + DAY, dt.time(), dt.UTC)
    params = {"midnight": midnight, "today": day.day + DAY, "first": day.day, "here_since": midnight - 3 * DAY}
    with connection.cursor() as cursor:
        cursor.execute(LAST_WEEK, params)
        [(_, project, *credits, _)] = cursor.fetchall()
    assert (project, *map(float, credits)) == (tidewater.pk, 16_000, pytest.approx(960_000))


def test_more_than_the_number_of_gpus_explains_is_capped(alice: User, tidewater: Project) -> None:
    Client("two-gpus-honest", alice).report_after(1, gpu_ec="1920001")
    assert Day.objects.get(project=tidewater).flags == DayFlag.CAPPED
    assert Note.objects.get().kind == "ec_above_time"


def computers_of_other_owners(number: int, name: str, flops: float) -> None:
    """Of a year ago, that were credited something."""
    long_ago = timezone.now() - dt.timedelta(days=365)
    project = make_project("Former", is_active=False)
    for index in range(number):
        owner = User.objects.create_user(f"owner{index}@example.org", "s", created_at=long_ago)
        gpu = {"type": "ATI", "name": name, "count": 1, "peak_flops": flops * (1 + index / 100)}
        host = Host.objects.create(owner=owner, created_at=long_ago, last_contact_at=timezone.now(), coprocs=[gpu])
        HostProject.objects.create(host=host, project=project, credited=[0, 1, 0, 1, 0, 0])


@pytest.mark.parametrize("young", ["account", "computer", "nothing credited"])
def test_owners_that_somebody_made_up_today_set_no_speed(young: str, tidewater: Project) -> None:
    computers_of_other_owners(5, "ATI X", 1.127e12)
    now = timezone.now()
    if young == "account":
        User.objects.update(created_at=now)
    elif young == "computer":
        Host.objects.update(created_at=now)
    else:
        HostProject.objects.update(credited=[0] * 6)
    assert learn(now) == 0


def test_an_impossible_peak_is_replaced_by_what_is_usual_for_the_model(alice: User, tidewater: Project) -> None:
    computers_of_other_owners(5, "ATI X", 1.127e12 / 1.02)
    assert learn(timezone.now()) == 1
    Client("gpu-peak-impossible", alice).report_after(1)
    # A day at the median of 1.127 TFLOPS: 86,400 s × 0.2 × 1.127e12 / 432e9
    assert booked(tidewater)["gpu_ec"] == pytest.approx(45_080, abs=0.01)
    assert booked(tidewater)["cpu_ec"] == 6_400
    assert Day.objects.get(project=tidewater).flags == DayFlag.SPEED_REPLACED
    happened = [explain(note).happened for note in Note.objects.filter(kind="speed_replaced")]
    assert [text.replace("\u202f", " ").replace("\xa0", " ") for text in happened] == [
        "The speed that the client reports for ATI X cannot be right (43 980 TFLOPS). 1.13 TFLOPS count instead."
    ]


def test_a_young_site_knows_common_gpus(alice: User, tidewater: Project) -> None:
    Client("gpu-peak-impossible", alice, name="AMD Radeon(TM) Vega 8 Graphics").report_after(1)
    # 512 cores × 2 × 1,101 MHz: 86,400 s × 0.2 × 1.127424e12 / 432e9
    assert booked(tidewater)["gpu_ec"] == pytest.approx(45_096.96, abs=0.01)


def test_an_honest_mac_is_believed(alice: User, tidewater: Project) -> None:
    # The client computes 64 GFLOPS for it, though its maker says 2,600: a day is 86,400 s × 0.2 × 64e9 / 432e9.
    Client("gpu-peak-impossible", alice, name="Apple M1", peak_flops="64000000000").report_after(1, gpu_ec="2560")
    assert booked(tidewater)["gpu_ec"] == 2_560
    assert Day.objects.get(project=tidewater).flags == 0


def test_a_client_that_reports_other_speeds_each_time_does_not_fill_the_notes(alice: User, tidewater: Project) -> None:
    computers_of_other_owners(5, "ATI X", 1.127e12)
    learn(timezone.now())
    client = Client("gpu-peak-impossible", alice)
    client.report_after(1)
    note = Note.objects.get(kind="speed_replaced")
    for number in range(1, MAX_SPEEDS_NOTED):
        note.pk, note.detail = None, f"gpu|{number}|1127000000000|ATI X"
        note.save()
    client.request = re.sub(rb"<peak_flops>[^<]*<", b"<peak_flops>44000000000000000.0<", client.request)
    client.report_after(1, gpu_ec="3500000000", gpu_time="172800")
    assert booked(tidewater)["gpu_time"] == 172_800
    assert Note.objects.filter(kind="speed_replaced").count() == MAX_SPEEDS_NOTED


@pytest.mark.parametrize("name", ["benchmark-zero", "benchmark-inf", "benchmark-nan", "benchmark-minus-one"])
def test_without_a_usable_benchmark_a_processor_counts_as_its_model_or_as_one_gflops(
    name: str, alice: User, tidewater: Project
) -> None:
    client = Client(name, alice)
    client.report_after(1)
    # 4 CPUs for a day at 1 GFLOPS: 4 × 200
    assert (booked(tidewater)["cpu_ec"], booked(tidewater)["cpu_time"]) == (800, 345_600)
    assert Day.objects.get(project=tidewater).flags == DayFlag.SPEED_REPLACED | DayFlag.SPEED_UNKNOWN
    [note] = Note.objects.all()
    assert "Sim CPU cannot be right (none was measured)" in explain(note).happened
    assert "--run_benchmarks" in explain(note).to_do
    # Once others have measured such a processor, its speed counts: 4 GFLOPS are 4 × 800 a day.
    ModelSpeed.objects.create(processor="cpu", name="sim cpu", flops=4_000_000_000, as_of=timezone.now())
    catalogue.forget()
    client.report_after(1, cpu_ec="4000", cpu_time="691200")
    assert booked(tidewater)["cpu_ec"] == 4_000


def test_the_last_word_on_an_unknown_model_is_the_ceilings(alice: User, tidewater: Project) -> None:
    Client("gpu-peak-impossible", alice).report_after(1)
    # 500 TFLOPS: 86,400 s × 0.2 × 500e12 / 432e9
    assert booked(tidewater)["gpu_ec"] == pytest.approx(20_000_000)
