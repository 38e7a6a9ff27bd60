"""The projects and urgent announcements that every RPC needs: read once, cached in this process for a few seconds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from accounting.engine.addresses import address_key, is_same_place
from accounting.engine.audience import Audience
from accounting.engine.choice.facts import ProjectFacts, Trouble, TroubleKind
from accounting.engine.hardware_models import NOTHING_USUAL, Usual
from accounting.ledger.models_seen import usual
from accounting.models import Announcement, Project, ProjectAddress
from accounting.models.news import PUBLIC
from accounting.rpc import account_keys
from portal.clients.database.timed_cache import TimedCache

log = structlog.get_logger("catalogue")

NEWS_KEPT: Final = dt.timedelta(days=30)
MAX_NEWS: Final = 50
KEPT_SECS: Final = 5.0
"""Other processes pick up a change in the admin within this time."""


@dataclass(frozen=True, slots=True)
class CatalogueProject:
    """A project as the choice of projects (``facts``) and the reply see it."""

    id: int
    name: str
    url: str
    url_signature: str
    key: str
    facts: ProjectFacts
    per_user: bool
    shared_account_key: str | None
    # The present key, and those that it replaced
    shared_account_keys: frozenset[str] = frozenset()
    # Other addresses of the project
    others: tuple[str, ...] = ()
    # The keys of those that only computers have reported
    unconfirmed_keys: frozenset[str] = frozenset()
    # Its former master URLs
    former: tuple[str, ...] = ()
    path_ignores_case: bool = False
    # The project server of this very site: every volunteer has an account there
    is_own: bool = False

    def is_confirmed(self, url: str) -> bool:
        """Whether more than computers' reports confirm that this address, as `Catalogue.at` found it, is the
        project's.
        """
        return not self.unconfirmed_keys or address_key(url) not in self.unconfirmed_keys

    def may_get_key(self, url: str) -> bool:
        """Whether an account key may be sent to this address: it was entered for the server and path of the master URL.

        The keys of the site's own project are made here. After a move, clients at its former addresses need new ones,
        too, when their former keys have ended, and they send them there anyway.
        """
        trusted = (self.url, *self.former) if self.is_own else (self.url,)
        return url == self.url or any(is_same_place(url, address) for address in trusted)


class Urgent(NamedTuple):
    """An urgent announcement: its title, its end, and its audience."""

    title: str
    until: dt.datetime
    audience: Audience


@dataclass(frozen=True, slots=True)
class Catalogue:
    by_id: dict[int, CatalogueProject]
    # Announcements that replies carry; and the audiences of others that are not for everybody
    urgent: tuple[Urgent, ...]
    audiences: tuple[Audience, ...]
    # How fast processors of known models are
    usual: Usual = NOTHING_USUAL
    # By the keys of all their addresses: as they are, and in lower case (None where ambiguous)
    by_key: dict[str, CatalogueProject] = field(init=False)
    by_folded_key: dict[str, CatalogueProject | None] = field(init=False)
    # The candidates of the choice, by id
    facts: tuple[ProjectFacts, ...] = field(init=False)
    # Projects where each volunteer has a separate key; and others that have no account to share
    with_own_keys: tuple[CatalogueProject, ...] = field(init=False)
    without_account: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        projects = sorted(self.by_id.values(), key=lambda project: project.id)
        others = {address_key(url): project for project in projects for url in project.others}
        own = {project.key: project for project in projects}
        by_key = others | own
        # An additional address that is another project's master URL makes nothing ambiguous.
        by_folded = _folded(others) | _folded(own)
        object.__setattr__(self, "by_key", by_key)
        object.__setattr__(self, "by_folded_key", by_folded)
        object.__setattr__(self, "facts", tuple(project.facts for project in projects))
        separate = tuple(project for project in projects if project.per_user or project.is_own)
        object.__setattr__(self, "with_own_keys", separate)
        lacking = (p.id for p in projects if p not in separate and p.shared_account_key is None)
        object.__setattr__(self, "without_account", frozenset(lacking))

    def at(self, url: str) -> CatalogueProject | None:
        """Return the project that a client has under this address, in any spelling.

        Upper and lower case of the path count, but clients that follow a redirect from http to https, or to a new
        master URL, write all of it in lower case (BOINC's client/cs_scheduler.cpp).
        """
        key = address_key(url)
        if (project := self.by_key.get(key)) is not None:
            return project
        folded = key.lower()
        project = self.by_folded_key.get(folded)
        return project if project is not None and (project.path_ignores_case or key == folded) else None

    def clients_take_for(self, url: str) -> CatalogueProject | None:
        """Return the project that clients would confuse with this one, as they look projects up without case."""
        return self.by_folded_key.get(address_key(url).lower())


def _folded(by_key: Mapping[str, CatalogueProject]) -> dict[str, CatalogueProject | None]:
    """Index by the keys in lower case; None for one of several projects."""
    folded: dict[str, CatalogueProject | None] = {}
    for key, project in by_key.items():
        is_alone = folded.setdefault(key.lower(), project) is project
        folded[key.lower()] = project if is_alone else None
    return folded


def with_facts(projects: QuerySet[Project]) -> QuerySet[Project]:
    """Read the projects with all that the choice is made from; five statements."""
    return projects.prefetch_related("keywords", "versions", "troubles", "standings")


def facts_of(project: Project) -> ProjectFacts:
    """Return a project, read ``with_facts``, as the choice sees it."""
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


_ADDRESSES: Final = Prefetch("addresses", ProjectAddress.objects.filter(is_active=True))


def _load() -> Catalogue:
    projects = [_entry(project) for project in with_facts(Project.objects.all()).prefetch_related(_ADDRESSES)]
    now = timezone.now()
    news = Announcement.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), published_at__lte=now, is_draft=False)
    # Clients drop older ones; few of them are not for everybody.
    recent = list(news.filter(Q(urgent_until__gt=now) | Q(published_at__gte=now - NEWS_KEPT) & ~PUBLIC)[:MAX_NEWS])
    urgent = [Urgent(a.title, a.urgent_until, a.audience) for a in recent if a.urgent_until and a.urgent_until > now]
    audiences = {a.audience for a in recent if a.published_at >= now - NEWS_KEPT and not a.audience.is_everybody}
    return Catalogue({p.id: p for p in projects}, tuple(urgent), tuple(audiences), usual())


def _entry(project: Project) -> CatalogueProject:
    shared = _readable(project)
    return CatalogueProject(
        id=project.pk,
        name=project.name,
        url=project.master_url,
        url_signature=project.url_signature,
        key=address_key(project.master_url),
        facts=facts_of(project),
        per_user=project.account_mode == Project.Account.PER_USER,
        shared_account_key=shared,
        shared_account_keys=frozenset(filter(None, [shared, *account_keys.former_shared(project)])),
        others=tuple(address.url for address in project.addresses.all()),
        unconfirmed_keys=frozenset(
            address.key for address in project.addresses.all() if address.source == ProjectAddress.Source.CLIENTS
        ),
        former=tuple(
            address.url for address in project.addresses.all() if address.source == ProjectAddress.Source.MOVED
        ),
        path_ignores_case=project.path_ignores_case,
        is_own=project.is_served_here,
    )


def _readable(project: Project) -> str | None:
    try:
        return account_keys.shared(project)
    except account_keys.UnreadableAccountKey as error:
        log.error("account_key_unreadable", project=project.name, reason=str(error))
        return None


cache: Final = TimedCache("projects", lambda: _load(), KEPT_SECS)
fresh: Final = cache.fresh
current: Final = cache.current
forget: Final = cache.forget
