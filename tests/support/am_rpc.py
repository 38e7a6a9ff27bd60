"""What the tests of the account-manager RPC share: computers that talk to it, replies taken apart, books looked up."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from django.db.models import F
from django.test import Client

from accounting.engine.amounts import MICRO
from accounting.models import Day, HostLedger, HostProject, Note, Project
from accounting.rpc import answer as rpc_answer
from accounting.wire.requests import parse_request
from portal.clients import sync_driver
from portal.clients.effects import Steps
from portal.models import Host, User
from tools.simulation.client import Device, SimulatedComputer

# At 4.32 GFLOPS a processor earns 4.32e9 * 200 / 86,400e9 = 0.01 credits a second.
FPOPS = 4_320_000_000
CPUS = 4
START = dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)

Six = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as a client reads it."""

    raw: bytes

    @property
    def root(self) -> ElementTree.Element:
        root = ElementTree.fromstring(self.raw)
        assert root.tag == "acct_mgr_reply"
        return root

    @property
    def error(self) -> tuple[int, str]:
        """Number and sentence of a refusal; (0, "") if it is none."""
        return int(self.root.findtext("error_num", "0")), self.root.findtext("error_msg", "")

    @property
    def repeat_secs(self) -> int:
        return int(self.root.findtext("repeat_sec", "0"))

    @property
    def messages(self) -> list[str]:
        return [message.text or "" for message in self.root.findall("message")]

    @property
    def accounts(self) -> dict[str, ElementTree.Element]:
        """The account elements by URL."""
        found = {account.findtext("url", ""): account for account in self.root.findall("account")}
        assert len(found) == len(self.root.findall("account"))
        return found

    def account(self, project: Project) -> ElementTree.Element:
        return self.accounts[project.master_url]

    def text(self, tag: str) -> str:
        return self.root.findtext(tag, "")


def make_computer(user: User, name: str = "studio", **fields: object) -> SimulatedComputer:
    """A computer of four processors whose client knows this volunteer's e-mail address and password."""
    password = f"{user.name.lower()}'s secret"
    computer = SimulatedComputer(name, f"{name.encode().hex():0<32}"[:32], user.email, password, CPUS, FPOPS)
    for field, value in fields.items():
        setattr(computer, field, value)
    return computer


def post(message: bytes, client: Client | None = None) -> Reply:
    """Send a message to the site over HTTP; refusals come with status 200 too."""
    response = (client or Client()).post("/rpc.php", message, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 200
    return Reply(response.content)


def sync(computer: SimulatedComputer) -> Reply:
    """The client reports over HTTP, now, and does as it is told."""
    reply = post(computer.request(time.time()))
    computer.apply_reply(reply.raw)
    return reply


def call(computer: SimulatedComputer, now: dt.datetime, *, is_lost: bool = False) -> Reply:
    """The client reports at a set time; a lost reply does not reach it."""
    reply = answer(computer.request(now.timestamp()), now)
    if not is_lost:
        computer.apply_reply(reply.raw)
    return reply


def answer(message: bytes, now: dt.datetime) -> Reply:
    return Reply(sync_driver.run(asked(message, now)))


def asked(message: bytes, now: dt.datetime) -> Steps[bytes]:
    """The use case of this request, for a driver."""
    return rpc_answer.answer(parse_request(message), now=now, address="192.0.2.1")


def attach(user: User, name: str = "studio", **fields: object) -> SimulatedComputer:
    """A computer that has just made its first contact, over HTTP, and is attached to all that it was offered."""
    computer = make_computer(user, name, **fields)
    sync(computer)
    return computer


def hours_pass(computer: SimulatedComputer, hours: float) -> None:
    """As if the last report had been this many hours earlier, by our clock and by the client's."""
    past = dt.timedelta(hours=hours)
    updated = HostLedger.objects.filter(host=host_of(computer)).update(
        last_at=F("last_at") - past, client_now=F("client_now") - past.total_seconds()
    )
    assert updated == 1


def work(computer: SimulatedComputer, project: Project, hours: float, jobs: int = 0) -> None:
    """This many hours of work of one processor, with the credit that the client counts for it."""
    computer.projects[project.master_url].work(computer, hours * 3600, 0, (jobs, 0))


def host_of(computer: SimulatedComputer) -> Host:
    return Host.objects.get(token=token_of(computer))


def token_of(computer: SimulatedComputer) -> str:
    return computer.opaque.removeprefix("<host>").removesuffix("</host>")


def row_of(computer: SimulatedComputer, project: Project) -> HostProject:
    return HostProject.objects.get(host=host_of(computer), project=project)


def credited(computer: SimulatedComputer, project: Project) -> Six:
    """The six amounts credited, which must be those of the days."""
    row = row_of(computer, project)
    amounts = tuple(row.credited)
    days = [0] * 6
    for day in Day.objects.filter(host_id=row.host_id, project=project):
        six = (day.cpu_ec, day.gpu_ec, day.cpu_time, day.gpu_time, day.njobs_success, day.njobs_error)
        days = [total + more for total, more in zip(days, six, strict=True)]
    assert amounts == tuple(days)
    return amounts[0], amounts[1], amounts[2], amounts[3], amounts[4], amounts[5]


def hours_credited(computer: SimulatedComputer, *projects: Project) -> float:
    """CPU hours that were credited at these projects together."""
    return sum(credited(computer, project)[2] for project in projects) / MICRO / 3600


def kinds_noted(computer: SimulatedComputer) -> list[str]:
    return sorted(Note.objects.filter(host=host_of(computer)).values_list("kind", flat=True))


def with_total(message: bytes, project: Project, tag: str, text: bytes) -> bytes:
    """The message with another text in one element of one project."""
    head, url, tail = message.partition(f"<url>{project.master_url}</url>".encode())
    before, start, rest = tail.partition(f"<{tag}>".encode())
    _, end, after = rest.partition(f"</{tag}>".encode())
    assert start and end
    return head + url + before + start + text + end + after


def copy_of(computer: SimulatedComputer, **fields: object) -> SimulatedComputer:
    """The same client with other fields, its projects its own."""
    projects = {url: replace(project, totals=list(project.totals)) for url, project in computer.projects.items()}
    copied = replace(computer, projects=projects)
    for field, value in fields.items():
        setattr(copied, field, value)
    return copied


GPU = Device("NVIDIA", "Example GPU", 1, 21_600_000_000_000)
