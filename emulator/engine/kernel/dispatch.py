"""Which runs the kernel can make; all others are made on objects."""

from __future__ import annotations

from emulator.engine.client import Client
from emulator.engine.contact import Contact
from emulator.engine.kernel.compiled import IS_COMPILED
from emulator.engine.kernel.exchange import Exchange
from emulator.engine.policies.long_term_debt import LongTermDebt
from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.policy import Policy
from emulator.engine.quirks import Quirks
from emulator.engine.scenario import NewApp, Scenario

POLICIES = (Rec, RecLetter, LongTermDebt)


def exchange_of(client: Client, contact: Contact, policy: Policy, scenario: Scenario) -> Exchange | None:
    """The table of a run that is made in arrays; None for one that is made on objects."""
    if not IS_COMPILED or not can_run(scenario, policy, client.quirks):
        return None
    assert isinstance(policy, Rec | LongTermDebt)
    return Exchange(client, contact, policy, uncompiled=False)


def can_run(scenario: Scenario, policy: Policy, quirks: Quirks) -> bool:
    """Whether the kernel knows all of it: one of its policies, no quirk, no limit of jobs at once, no server that is
    down by a calendar, replies late or looks at all jobs."""
    apps = [app for project in scenario.projects for app in project.apps]
    apps += [event.app for event in scenario.events if isinstance(event, NewApp)]
    return (
        type(policy) in POLICIES
        and quirks == Quirks()
        and not any(app.max_concurrent for app in apps)
        and not any(
            project.max_concurrent
            or project.downtimes
            or project.available.trace_secs
            or project.reply_delay_secs
            or project.workload_check
            for project in scenario.projects
        )
    )
