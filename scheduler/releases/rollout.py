"""Who gets a version that is stored: testers, all, nobody. The scheduler follows within five seconds.

Locks the versions of the app, platform and plan class by id, against changes only: requests that send them go on.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from credit.models import AppVersion
from portal.models import User
from scheduler.engine import release_states
from scheduler.engine.release_states import NotPossible, ReleaseAction, ReleaseState
from scheduler.models import BetaTest
from scheduler.programs import catalogue


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version, its state, and what may be done with it. ``before``: what a roll-back would go back to."""

    version: AppVersion
    state: ReleaseState
    actions: list[ReleaseAction]
    before: AppVersion | None


def state_of(version: AppVersion) -> ReleaseState:
    return release_states.stored_state(is_withdrawn=version.is_deprecated, is_tested=hasattr(version, "beta_test"))


def read_versions() -> list[VersionRow]:
    """All versions of apps that take jobs, the newest of each platform and plan class first."""
    versions = list(
        AppVersion.objects.filter(app__is_deprecated=False).select_related(
            "app", "platform", "beta_test", "beta_test__begun_by"
        )
    )
    by_id = {each.pk: each for each in versions}
    facts = {each.pk: catalogue.version_facts(each) for each in versions}
    alike = defaultdict(list)
    for fact in facts.values():
        alike[fact.app_id, fact.platform, fact.plan_class].append(fact)
    rows = []
    for each in versions:
        state, fact = state_of(each), facts[each.pk]
        found = None
        if state == ReleaseState.RELEASED:
            found = release_states.version_before(fact, alike[fact.app_id, fact.platform, fact.plan_class])
        rows.append(VersionRow(each, state, release_states.allowed(state), by_id[found.id] if found else None))
    return rows


def _before(version: AppVersion, alike: Iterable[AppVersion]) -> AppVersion | None:
    if state_of(version) != ReleaseState.RELEASED:
        return None
    by_id = {each.pk: each for each in alike}
    found = release_states.version_before(
        catalogue.version_facts(version), [catalogue.version_facts(each) for each in by_id.values()]
    )
    return by_id[found.id] if found else None


@transaction.atomic
def act(
    version: AppVersion, action: ReleaseAction, user: User, now: dt.datetime, *, with_volunteers: bool = False
) -> ReleaseState:
    """Do it; the new state. Raises NotPossible."""
    locked = _locked(version)[version.pk]
    state = release_states.after(state_of(locked), action)
    _set(locked, state)
    if state == ReleaseState.BETA:
        BetaTest.objects.create(app_version=locked, begun_by=user, with_volunteers=with_volunteers, begun_at=now)
    return state


@transaction.atomic
def roll_back(version: AppVersion) -> AppVersion:
    """Withdraw a version and send the one before it to all, in one step; that one. Raises NotPossible."""
    locked = _locked(version)
    before = _before(locked[version.pk], locked.values())
    if before is None:
        raise NotPossible("there is no older version to go back to, or this one is not sent to all")
    _set(locked[version.pk], ReleaseState.WITHDRAWN)
    if before.is_deprecated:
        _set(before, ReleaseState.RELEASED)
    return before


def _locked(version: AppVersion) -> dict[int, AppVersion]:
    alike = AppVersion.objects.filter(app=version.app_id, platform=version.platform_id, plan_class=version.plan_class)
    ids = [each.pk for each in alike.select_for_update(no_key=True).order_by("pk")]
    return AppVersion.objects.select_related("app", "platform", "beta_test").in_bulk(ids)


def _set(version: AppVersion, state: ReleaseState) -> None:
    is_deprecated = state == ReleaseState.WITHDRAWN
    if version.is_deprecated != is_deprecated:
        version.is_deprecated = is_deprecated
        version.save(update_fields=["is_deprecated"])
    if not is_deprecated:
        # A new test has a row of its own. Withdrawn, a version keeps its row: it was tested, and never sent to all.
        BetaTest.objects.filter(app_version=version).delete()
