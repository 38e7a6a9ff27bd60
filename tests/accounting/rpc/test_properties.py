"""The whole RPC on a real database against a second implementation of the rules: any sequence, and many at once.

One after the other, every number must agree with ``ReferenceHost`` after each request. At once, the outcome must be
that of some order of the same requests.
"""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from accounting.engine.amounts import KINDS
from accounting.engine.machine import Allowance
from accounting.ledger import check
from accounting.models import HostLedger, HostProject, Project
from accounting.rpc.store import to_us
from accounting.wire.requests import parse_request
from portal.models import Host, User
from tests.support.am_rpc import FPOPS, GPU, START, Reply, answer, asked, make_computer, with_total
from tests.support.event_loops import Loop, run_all, several
from tests.support.reference_ledger import Hardware, ReferenceHost, Row
from tools.simulation.client import SimulatedComputer

ACTIONS = (
    "report",
    "report",
    "report",
    "reply is lost",
    "earlier message",
    "earlier message",
    "reset",
    "earlier totals",
    "There is no project for this computer",
    "id is forgotten",
    "login by password",
    "hardware changes",
    "total is no number",
    "another version",
)
MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True)
class Step:
    """What happens to which computer, this many seconds after the last step, and what it did before that."""

    computer: int
    gap_secs: int
    action: str
    hours: tuple[float, float, float]
    jobs: int
    choice: int


steps = st.builds(
    Step,
    st.integers(0, 1),
    st.one_of(st.sampled_from([0, 1, 30, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 40 * DAY]), st.integers(0, 2 * DAY)),
    st.sampled_from(ACTIONS),
    st.tuples(*[st.one_of(st.just(0.0), st.floats(0, 30), st.sampled_from([0.01, 5_000.0]))] * 3),
    st.integers(0, 40),
    st.integers(0, 20),
)


@dataclass
class Mirror:
    """What the reference has of a host: the ledger, and the hardware that was stored last."""

    ledger: ReferenceHost = field(default_factory=ReferenceHost)
    hardware: Hardware | None = None

    def apply_reply(self, message: bytes, now: dt.datetime, token: str | None, projects: dict[str, int]) -> None:
        request = parse_request(message)
        described = request.hardware()
        assert described is not None
        gpus = [(c.count, int(c.peak_flops or 0)) for c in described.coprocs]
        hardware = (described.ncpus or 0, int(described.p_fpops or 0), gpus)
        lines = [
            (
                projects[p.url],
                dict(zip(KINDS, p.totals, strict=True)) if p.totals else None,
                p.fault,
                {each.kind: each.is_lasting for each in p.unreadable},
            )
            for p in request.projects
        ]
        credit = self.ledger.rpc(
            lines,
            now=to_us(now),
            client_now=request.client_now,
            old=self.hardware,
            new=hardware,
            # Its CPID never changes: without an id it is the record's client, too.
            same=request.host_token in (None, token),
            honours=request.version_tuple >= (8, 3),
        )
        # A stale message changes nothing, not even the hardware.
        if credit is not None:
            self.hardware = hardware
            for project in projects.values():
                if project not in {line[0] for line in lines}:
                    self.ledger.offer(project)


class Watched:
    """A computer, its books on the site and in the reference, and all that it ever sent."""

    def __init__(self, computer: SimulatedComputer, projects: list[Project]) -> None:
        self.computer = computer
        self.projects = projects
        self.ids = {project.master_url: project.pk for project in projects}
        self.mirror = Mirror()
        self.sent: list[bytes] = []
        self.totals: list[dict[str, list[int]]] = [{}]

    @property
    def host(self) -> Host | None:
        return Host.objects.filter(owner__email=self.computer.email, domain_name=self.computer.name).first()

    def prepare(self, step: Step, now: dt.datetime) -> bytes:
        """The message of this step."""
        computer, projects = self.computer, self.computer.projects
        for project, hours in zip(self.projects, step.hours, strict=True):
            if attached := projects.get(project.master_url):
                gpu_secs = hours * 100 if computer.devices else 0
                attached.work(computer, hours * HOUR, gpu_secs, (step.jobs, step.jobs // 4))
        chosen = self.projects[step.choice % len(self.projects)]
        message = self._act(step, chosen)
        if message is None:
            message = computer.request(now.timestamp())
            if step.action == "total is no number" and chosen.master_url in projects and computer.dynamic:
                message = with_total(message, chosen, KINDS[step.choice % 6], b"nan" if step.jobs % 2 else b"x")
            self.sent.append(message)
        self.totals.append({url: list(attached.totals) for url, attached in projects.items()})
        return message

    def _act(self, step: Step, chosen: Project) -> bytes | None:
        """What happens to the client before it reports; a message, if it is an earlier one."""
        computer, attached = self.computer, self.computer.projects.get(chosen.master_url)
        if step.action == "earlier message" and self.sent:
            return self.sent[-1 - step.choice % len(self.sent)]
        if step.action == "reset" and attached:
            attached.totals = [0] * 6
        elif step.action == "earlier totals" and attached:
            attached.totals = list(self.totals[step.choice % len(self.totals)].get(chosen.master_url, [0] * 6))
        elif step.action == "There is no project for this computer":
            computer.projects.pop(chosen.master_url, None)
        elif step.action == "id is forgotten":
            computer.opaque = ""
        elif step.action == "login by password":
            computer.authenticator = ""
        elif step.action == "hardware changes":
            computer.ncpus = 1 + step.choice
            computer.devices = (GPU,) if step.choice % 3 == 0 else ()
        elif step.action == "another version":
            computer.version = "8.3.1" if step.choice % 2 else "7.20.5"
        return None

    def do(self, step: Step, now: dt.datetime, by: Callable[[bytes, dt.datetime], Reply] = answer) -> None:
        message = self.prepare(step, now)
        host = self.host
        reply = by(message, now)
        self.mirror.apply_reply(message, now, host.token if host else None, self.ids)
        if step.action not in ("reply is lost", "earlier message"):
            self.computer.apply_reply(reply.raw)
        assert self.difference(self.mirror) is None

    def difference(self, mirror: Mirror) -> str | None:
        """Where the database and the reference disagree."""
        ledger = HostLedger.objects.get(host=self.host)
        last_at = to_us(ledger.last_at) if ledger.last_at else None
        found: list[tuple[str, Any, Any]] = [
            ("level", dict(zip(Allowance._fields, ledger.level, strict=True)), mirror.ledger.level),
            ("last_at", last_at, mirror.ledger.last_at),
            ("client_now", ledger.client_now, mirror.ledger.client_now),
            ("rows", {p.project_id: plain(p) for p in HostProject.objects.filter(host=self.host)}, mirror.ledger.rows),
        ]
        return next((f"{name}: {ours} is not {theirs}" for name, ours, theirs in found if ours != theirs), None)


def plain(row: HostProject) -> Row:
    """A row as the reference keeps it."""

    def amounts(values: list[Any]) -> dict[str, int]:
        return dict(zip(KINDS, map(int, values), strict=True))

    return Row(
        amounts(row.reported) if row.reported is not None else None,
        [amounts(each) for each in row.earlier],
        amounts(row.restart) if row.restart is not None else None,
        amounts(row.credited),
        amounts(row.pending),
        amounts(row.dropped),
        amounts(row.handed) if row.handed is not None else None,
        row.listed,
        set(row.broken),
    )


@pytest.fixture(autouse=True)
def _many_logins(settings: Settings) -> None:
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 1_000_000


_volunteers = itertools.count(1)


def agree(sequence: list[Step], projects: list[Project], by: Callable[[bytes, dt.datetime], Reply]) -> None:
    """Do the steps with two computers of a new volunteer; after each, the books must be those of the reference."""
    name = f"Volunteer{next(_volunteers)}"
    user = User.objects.create_user(f"{name}@example.org", f"{name.lower()}'s secret", name=name)
    watched = [
        Watched(make_computer(user, "studio"), projects),
        Watched(make_computer(user, "laptop", p_model="Another CPU", p_fpops=FPOPS // 3), projects),
    ]
    now = START
    for step in sequence:
        now += dt.timedelta(seconds=step.gap_secs)
        watched[step.computer].do(step, now, by)
    assert list(check.differences()) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.lists(steps, min_size=2, max_size=14))
def test_any_sequence_of_requests_agrees_with_the_reference(sequence: list[Step], projects: list[Project]) -> None:
    agree(sequence, projects, answer)


@pytest.fixture
def loops(transactional_db: None) -> Iterator[list[Loop]]:
    """The event loops of two processes."""
    with several(2) as made:
        yield made


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.lists(steps, min_size=2, max_size=14))
def test_any_sequence_agrees_on_the_event_loop(
    sequence: list[Step], loops: list[Loop], projects: list[Project]
) -> None:
    agree(sequence, projects, lambda message, now: Reply(loops[0].run(asked(message, now))))


HOSTS = 30
THREADS = 10
AtOnce = Callable[[list[list[tuple[bytes, dt.datetime]]]], list[Reply]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", [1])
def test_requests_at_once_have_the_outcome_of_some_order(seed: int, alice: User, projects: list[Project]) -> None:
    have_the_outcome_of_some_order(random.Random(seed), alice, projects, _by_threads)


@pytest.mark.parametrize("seed", [3])
def test_requests_at_once_on_two_event_loops_have_the_outcome_of_some_order(
    seed: int, loops: list[Loop], alice: User, projects: list[Project]
) -> None:
    def by_loops(groups: list[list[tuple[bytes, dt.datetime]]]) -> list[Reply]:
        messages = [message for group in groups for message in group]
        replies = iter(run_all(loops, [asked(*message) for message in messages]))
        found = [[next(replies) for _ in group][-1] for group in groups]
        assert not [reply for reply in found if isinstance(reply, BaseException)]
        return [Reply(reply) for reply in found if isinstance(reply, bytes)]

    have_the_outcome_of_some_order(random.Random(seed), alice, projects, by_loops)


def have_the_outcome_of_some_order(dice: random.Random, user: User, projects: list[Project], at_once: AtOnce) -> None:
    watched = [Watched(make_computer(user, f"computer-{n}", p_model=f"CPU {n}"), projects) for n in range(HOSTS)]
    now = START
    for each in watched:
        each.do(Step(0, 0, "report", (0, 0, 0), 0, 0), now)
    for _ in range(4):
        now += dt.timedelta(seconds=dice.choice([1, MINUTE, HOUR, DAY]))
        groups = [_messages(each, dice, now) for each in watched]
        replies = at_once(groups)
        for each, group, reply in zip(watched, groups, replies, strict=True):
            _find_order(each, group)
            each.computer.apply_reply(reply.raw)
    assert list(check.differences()) == []


def _messages(each: Watched, dice: random.Random, now: dt.datetime) -> list[tuple[bytes, dt.datetime]]:
    """One to three messages of a computer that arrive at about the same time; some are twice the same."""
    group: list[tuple[bytes, dt.datetime]] = []
    for number in range(dice.choice([1, 2, 2, 3])):
        if group and dice.random() < 0.4:
            group.append(group[-1])
            continue
        hours = (dice.uniform(0, 9), dice.choice([0.0, 3.0]), dice.choice([0.0, 200.0]))
        step = Step(0, 0, dice.choice(ACTIONS), hours, dice.randrange(5), dice.randrange(20))
        group.append((each.prepare(step, now + dt.timedelta(seconds=number)), now + dt.timedelta(seconds=number)))
    return group


def _by_threads(groups: list[list[tuple[bytes, dt.datetime]]]) -> list[Reply]:
    """Answer all messages on several threads, those of a group side by side; the reply to each group's last."""

    def one(message: bytes, now: dt.datetime) -> Reply:
        try:
            return answer(message, now)
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [[pool.submit(one, *message) for message in group] for group in groups]
        return [[future.result() for future in group][-1] for group in futures]


def _find_order(each: Watched, group: list[tuple[bytes, dt.datetime]]) -> None:
    """Take the reference to where the database is; no order of the messages leads there: the test fails."""
    host = each.host
    assert host is not None
    differences = []
    for order in itertools.permutations(group):
        mirror = copy.deepcopy(each.mirror)
        for message, now in order:
            mirror.apply_reply(message, now, host.token, each.ids)
        difference = each.difference(mirror)
        if difference is None:
            each.mirror = mirror
            return
        differences.append(difference)
    raise AssertionError("\n".join(differences))
