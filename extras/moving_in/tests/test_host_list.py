"""People and computers come from lists, which any account manager's operators can write."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Final

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from accounting.engine.amounts import MICRO
from accounting.ledger.check import differences
from accounting.models import AccountSettings, Day, HostProject, Project
from accounting.rpc import account_keys, catalogue
from extras.moving_in.tests.imports import HASHERS
from portal.models import Host, User
from portal.people.accounts import authenticate_client
from tests.support.am_rpc import call, make_computer
from tools.simulation.client import Attachment

pytestmark = pytest.mark.django_db
DAYS: Final = "owner,day,cpu_credit,gpu_credit,cpu_secs,gpu_secs,finished,failed\n"
DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "reference" / "host-list.md"


@pytest.fixture(autouse=True)
def keys(signing_keys: None, settings: Settings) -> None:
    settings.PASSWORD_HASHERS = HASHERS
    catalogue.forget()


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """The example of the documentation."""
    example = DOCUMENT.read_text().rpartition("```\n")[0].rpartition("```\n")[2]
    name = ""
    for line in example.splitlines():
        found = re.fullmatch(r"(?:(\w+\.csv):)?\s*(.*)", line)
        assert found is not None
        name = found[1] or name
        with (tmp_path / name).open("a") as file:
            file.write(f"{found[2]}\n")
    return tmp_path


def import_(folder: Path, *options: str) -> None:
    call_command("import_host_list", str(folder), *options)


def test_the_documented_example_comes_and_a_repetition_changes_nothing(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_(lists)
    user = authenticate_client("zoe@example.org", "5ebe2294ecd0e0f08eab7690d2a6ee69", address="192.0.2.1")
    assert (user.pk, user.name) == (7, "Zoë")
    alpha = Project.objects.get(name="Alpha")
    assert account_keys.shared(alpha) == "12_77aa6d2754819a30f128656675a452bb"
    host = Host.objects.get(former_number=70)
    row = HostProject.objects.get(host=host)
    assert [int(each) for each in row.reported or ()] == [72_500_000, 0, 7200 * MICRO, 0, 2, 1]
    day = Day.objects.get()
    assert (day.user_id, day.day, day.cpu_ec, day.flags) == (7, dt.date(2026, 2, 28), 72_500_000, 0)
    assert list(differences()) == []
    import_(lists)
    said = capsys.readouterr().out
    assert re.search(r"days of people\s+2\s+2\s+0\s+0", said.rpartition("read")[2])
    assert "days of people, notes" not in said


def test_a_rehearsal_writes_nothing(lists: Path) -> None:
    import_(lists, "--rehearse")
    assert not User.objects.exists() and not Host.objects.exists() and not Project.objects.exists()


def test_a_client_goes_on_from_its_last_totals(lists: Path) -> None:
    now = timezone.now()
    (lists / "computers.csv").write_text(
        f"number,owner,last_contact,name\n70,7,{(now - dt.timedelta(hours=3)).isoformat()},studio\n"
    )
    import_(lists)
    computer = make_computer(User(email="zoe@example.org", name="x"), "studio", dynamic=True)
    computer.authenticator, computer.opaque = "0123456789abcdef0123456789abcdef", "<host_id>70</host_id>"
    alpha = Attachment("https://alpha.example.org/science/", "Alpha", "12_77aa6d2754819a30f128656675a452bb")
    # An hour more than the two that it last reported
    alpha.totals = [108_500_000, 0, 10_800 * MICRO, 0, 3, 1]
    computer.projects[alpha.url] = alpha
    call(computer, now)
    assert HostProject.objects.get(host__former_number=70).credited == [36 * MICRO, 0, 3600 * MICRO, 0, 1, 0]


def test_keywords_and_days_apart_are_as_listed(lists: Path) -> None:
    (lists / "people.csv").write_text("number,email,keywords_yes,keywords_no\n7,zoe@example.org,2 3,4\n")
    days = ["owner,day,cpu_credit,gpu_credit,cpu_secs,gpu_secs,finished,failed"]
    days += [f"7,{day},1,0,3600,0,1,0" for day in ("2026-02-28", "2026-01-03", "2026-01-01", "2026-01-02")]
    (lists / "days.csv").write_text("\n".join(days))
    import_(lists)
    chosen = AccountSettings.objects.get(user=7)
    assert (chosen.keywords_yes, chosen.keywords_no) == ([2, 3], [4])
    found = list(Day.objects.order_by("day").values_list("day", "cpu_time", "flags"))
    assert found == [
        (dt.date.fromisoformat(day), 3600 * MICRO, 0)
        for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-02-28")
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("people", "number,email\n0,a@example.org\n", "people.csv, line 2, number: a whole number from 1 to"),
        ("people", "number\n7\n", "people.csv: the column 'email' is missing"),
        ("people", "number,email,phone\n7,a@example.org,1\n", "people.csv: there is no column 'phone'"),
        (
            "people",
            "number,email,password_hash,password_kind\n7,a@example.org,secret,plain\n",
            "people.csv, line 2, password_kind: bcrypt-md5 or md5, with such a hash; empty without a hash",
        ),
        ("people", "number,email\n7,a@example.org\n7,b@example.org\n", "people.csv: a number comes twice"),
        ("computers", "number,owner,last_contact\n70,7,yesterday\n", "line 2, last_contact: a time such as 2026"),
        ("days", f"{DAYS}7,2026-02-30,1,0,1,0,0,0\n", "day: a day such as"),
        ("days", f"{DAYS}7,2026-02-28,nan,0,1,0,0,0\n", "cpu_credit: a number from 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named_and_nothing_is_written(lists: Path, name: str, text: str, words: str) -> None:
    (lists / f"{name}.csv").write_text(text)
    with pytest.raises(CommandError, match=re.escape(words)):
        import_(lists)
    assert not User.objects.exists()
