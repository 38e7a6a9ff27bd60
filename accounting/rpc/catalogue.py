"""The projects and urgent announcements as every RPC needs them: read once, kept in this process for a few seconds."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from django.conf import settings
from django.db.models import Q, QuerySet

from accounting.engine.audience import Audience
from accounting.engine.choice.facts import ProjectFacts, Trouble, TroubleKind
from accounting.engine.hardware_models import NOTHING_USUAL, Usual
from accounting.ledger.models_seen import usual
from accounting.models import Announcement, Project
from accounting.models.news import PUBLIC
from accounting.rpc import account_keys
from portal.clients.timed_cache import TimedCache
from portal.databases import clock

log = structlog.get_logger("catalogue")

NEWS_KEPT: Final = dt.timedelta(days=30)
MAX_NEWS: Final = 50
KEPT_SECS: Final = 5.0
"""After a change in the admin, other processes follow within this time."""


@dataclass(frozen=True, slots=True)
class CatalogueProject:
    """A project as the choice of projects (``facts``) and the reply see it."""

    id: int
    name: str
    url: str
    url_signature: str
    facts: ProjectFacts
    per_user: bool
    shared_account_key: str | None
    # The project server of this very site: every volunteer has an account there
    is_own: bool = False


class Urgent(NamedTuple):
    """An announcement while it is urgent: its title, until when, and for whom."""

    title: str
    until: dt.datetime
    audience: Audience


@dataclass(frozen=True, slots=True)
class Catalogue:
    by_id: dict[int, CatalogueProject]
    by_url: dict[str, CatalogueProject]
    # Announcements that replies carry; and for whom there are others that are not for everybody
    urgent: tuple[Urgent, ...]
    audiences: tuple[Audience, ...]
    # How fast processors of known models are
    usual: Usual = NOTHING_USUAL
    # The candidates of the choice, by id
    facts: tuple[ProjectFacts, ...] = field(init=False)
    # Projects where each volunteer has a separate key; and others that have no account to share
    with_own_keys: tuple[CatalogueProject, ...] = field(init=False)
    without_account: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        projects = sorted(self.by_id.values(), key=lambda project: project.id)
        object.__setattr__(self, "facts", tuple(project.facts for project in projects))
        own = tuple(project for project in projects if project.per_user or project.is_own)
        object.__setattr__(self, "with_own_keys", own)
        lacking = (p.id for p in projects if p not in own and p.shared_account_key is None)
        object.__setattr__(self, "without_account", frozenset(lacking))


def with_facts(projects: QuerySet[Project]) -> QuerySet[Project]:
    """The projects with all that the choice is made from; five statements."""
    return projects.prefetch_related("keywords", "versions", "troubles", "standings")


def facts_of(project: Project) -> ProjectFacts:
    """A project, read ``with_facts``, as the choice sees it."""
    boosts = {standing.on_gpu: standing.boost for standing in project.standings.all()}
    return ProjectFacts(
        id=project.pk,
        share=project.default_share,
        is_active=project.is_active,
        is_down=project.down_since is not None,
        keywords={row.keyword: row.weight for row in project.keywords.all()},
        versions=frozenset((row.platform, row.processor_type) for row in project.versions.all()),
        boosts=(boosts.get(False, 1.0), boosts.get(True, 1.0)),
        troubles=tuple(Trouble(TroubleKind(row.kind), row.processor_type, row.since) for row in project.troubles.all()),
    )


def _load() -> Catalogue:
    projects = [_entry(project) for project in with_facts(Project.objects.all())]
    now = clock.now()
    news = Announcement.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), published_at__lte=now, is_draft=False)
    # Clients drop what is older; few of them are not for everybody.
    recent = list(news.filter(Q(urgent_until__gt=now) | Q(published_at__gte=now - NEWS_KEPT) & ~PUBLIC)[:MAX_NEWS])
    urgent = [Urgent(a.title, a.urgent_until, a.audience) for a in recent if a.urgent_until and a.urgent_until > now]
    audiences = {a.audience for a in recent if a.published_at >= now - NEWS_KEPT and not a.audience.is_everybody}
    return Catalogue(
        {p.id: p for p in projects}, {p.url: p for p in projects}, tuple(urgent), tuple(audiences), usual()
    )


def _entry(project: Project) -> CatalogueProject:
    return CatalogueProject(
        id=project.pk,
        name=project.name,
        url=project.master_url,
        url_signature=project.url_signature,
        facts=facts_of(project),
        per_user=project.account_mode == Project.Account.PER_USER,
        shared_account_key=_readable(project),
        is_own=is_own(project.master_url),
    )


def is_own(master_url: str) -> bool:
    """Whether this is the address of the site's own project server."""
    return master_url == settings.PROJECT_URL and "project" in settings.ROOMS


def _readable(project: Project) -> str | None:
    if not project.shared_account_key:
        return None
    try:
        return account_keys.decrypt(bytes(project.shared_account_key))
    except account_keys.UnreadableAccountKey as error:
        log.error("account_key_unreadable", project=project.name, reason=str(error))
        return None


cache: Final = TimedCache("projects", lambda: _load(), KEPT_SECS)
fresh: Final = cache.fresh
current: Final = cache.current
forget: Final = cache.forget
