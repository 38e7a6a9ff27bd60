"""Who gets a stored version: testers, all, nobody. The scheduler follows within five seconds.

Locks the versions of the app, platform and plan class by id, against changes only: requests that send them are not
blocked.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import QuerySet

from credit.models import AppVersion
from portal.audit import signed_log
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.models import SignedEntry, User
from scheduler.engine import release_states
from scheduler.engine.release_states import STATE_CODES, NotPossible, ReleaseAction, ReleaseState
from scheduler.models import BetaTest
from scheduler.programs import catalogue

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version, its state, and the actions allowed. ``before``: the version that a roll-back would return to."""

    version: AppVersion
    state: ReleaseState
    actions: list[ReleaseAction]
    before: AppVersion | None

    @property
    def state_label(self) -> str:
        return sentence(Message(STATE_CODES[self.state]))


def state_of(version: AppVersion) -> ReleaseState:
    return release_states.stored_state(is_withdrawn=version.is_deprecated, is_tested=hasattr(version, "beta_test"))


def tested_ids() -> Iterable[int]:
    """Return the versions under test, and those that were only tested before they were withdrawn."""
    return BetaTest.objects.values_list("app_version_id", flat=True)


def read_versions() -> list[VersionRow]:
    """Return all versions of apps that take jobs, the newest of each platform and plan class first."""
    versions = list(
        AppVersion.objects.filter(app__is_deprecated=False).select_related(
            "app", "platform", "beta_test", "beta_test__begun_by"
        )
    )
    by_id = {version.pk: version for version in versions}
    facts = {version.pk: catalogue.version_facts(version) for version in versions}
    alike = defaultdict(list)
    for fact in facts.values():
        alike[fact.app_id, fact.platform, fact.plan_class].append(fact)
    rows = []
    for version in versions:
        state, fact = state_of(version), facts[version.pk]
        before = None
        if state == ReleaseState.RELEASED:
            before = release_states.version_before(fact, alike[fact.app_id, fact.platform, fact.plan_class])
        rows.append(VersionRow(version, state, release_states.allowed(state), by_id[before.id] if before else None))
    return rows


def version_before(version: AppVersion) -> AppVersion:
    """Return the version that a roll-back would send again. Locks nothing; raises NotPossible."""
    alike = _alike(version).select_related("app", "platform", "beta_test")
    return _before(version, alike)


def _before(version: AppVersion, alike: Iterable[AppVersion]) -> AppVersion:
    by_id = {version_before.pk: version_before for version_before in alike}
    before = None
    if state_of(version) == ReleaseState.RELEASED:
        before = release_states.version_before(
            catalogue.version_facts(version), [catalogue.version_facts(candidate) for candidate in by_id.values()]
        )
    if before is None:
        raise NotPossible(Message("no_older_version"))
    return by_id[before.id]


@transaction.atomic
def act(
    version: AppVersion, action: ReleaseAction, user: User, now: dt.datetime, *, with_volunteers: bool = False
) -> ReleaseState:
    """Carry out the action; return the new state. Raises NotPossible."""
    locked = lock(version)[version.pk]
    state = release_states.after(state_of(locked), action)
    _set(locked, state)
    if state == ReleaseState.BETA:
        BetaTest.objects.create(app_version=locked, begun_by=user, with_volunteers=with_volunteers, begun_at=now)
    log(locked, state)
    return state


@transaction.atomic
def roll_back(version: AppVersion) -> AppVersion:
    """Withdraw a version and send the previous one to all, in one step; return that one. Raises NotPossible."""
    locked = lock(version)
    before = _before(locked[version.pk], locked.values())
    _set(locked[version.pk], ReleaseState.WITHDRAWN)
    if before.is_deprecated:
        _set(before, ReleaseState.RELEASED)
        log(before, ReleaseState.RELEASED)
    log(locked[version.pk], ReleaseState.WITHDRAWN)
    return before


def log(version: AppVersion, state: ReleaseState) -> None:
    """Record in the signed log who gets a version from now on; the last step of a transaction."""
    signed_log.append(SignedEntry.Kind.RELEASE, {"version": str(version), "action": state.name.lower()})


def lock(version: AppVersion) -> dict[int, AppVersion]:
    """Lock and return the versions of its app, platform and plan class by id, in this order."""
    ids = [alike.pk for alike in _alike(version).select_for_update(no_key=True).order_by("pk")]
    return AppVersion.objects.select_related("app", "platform", "beta_test").in_bulk(ids)


def _alike(version: AppVersion) -> QuerySet[AppVersion]:
    return AppVersion.objects.filter(app=version.app_id, platform=version.platform_id, plan_class=version.plan_class)


def _set(version: AppVersion, state: ReleaseState) -> None:
    is_deprecated = state == ReleaseState.WITHDRAWN
    if version.is_deprecated != is_deprecated:
        version.is_deprecated = is_deprecated
        version.save(update_fields=["is_deprecated"])
    if not is_deprecated:
        # A new test has a new row. A withdrawn version keeps its row: it was tested, and never sent to all.
        BetaTest.objects.filter(app_version=version).delete()
