"""What an app may add to the pages and the work of others: one interface for kernel apps and extras alike.

An extra is an app below ``extras/`` that imports the kernel and that the kernel never imports: it is asked here. The
settings ROOMS and EXTRAS decide which apps are in use. The tables of the others stay, and so do their duties to people:
a person's data in them goes into copies of that person's data, and is erased with the account.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models import Model, QuerySet
from django.urls import URLPattern, URLResolver
from django.utils.module_loading import module_has_submodule

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise
    from prometheus_client.registry import Collector

    from portal.audit.proposals import Proposal
    from portal.audit.register import Audited
    from portal.audit.steps import Forecast, RowOperation, Section
    from portal.audit.two_persons import StepKind
    from portal.dashboard.navigation import AdminPage
    from portal.dashboard.registry import Part
    from portal.maintenance.jobs import Job
    from portal.models import Change, Host, User
    from portal.people.consents import ConsentKind


class LinkPlace(StrEnum):
    """Places where the kernel's pages link to pages of other apps."""

    # The groups of pages about the account
    COMPUTING = "computing"
    MESSAGES = "messages"
    PUBLIC = "public"
    SIGN_IN = "sign_in"
    DATA = "data"
    MENU = "menu"
    HISTORY = "history"
    PROJECT = "project"
    BATCHES = "batches"


class Link(NamedTuple):
    """A link to a page. The menu is in the header; groups of links stand above each page about the account."""

    view: str
    title: StrOrPromise
    places: tuple[LinkPlace, ...]


class Periodic(NamedTuple):
    """A task, the seconds between two of its runs, and its title for operators."""

    task: str
    every_secs: int
    title: StrOrPromise


@dataclass(frozen=True, slots=True)
class HostSection:
    """A section of a computer's page: its template, which sees it as ``section``, and its rows."""

    template: str
    rows: list[object]


@dataclass(frozen=True, slots=True)
class HostProblem:
    """A problem that a computer's reports show, in words that name no project and no amount."""

    host_id: int
    text: str
    last_at: dt.datetime


class ArchivedCredit(NamedTuple):
    """What archived results earned one owner.

    ``ngranted`` counts the results that were granted credit. ``credit`` adds up the larger of grant and partial credit.
    """

    owner_id: int
    ngranted: int
    credit: float


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A JSON file in the copy of somebody's data: its description for the reader, and rows of tables by key."""

    name: str
    about: str
    rows: Mapping[str, QuerySet[Any]]


class SiteApp(AppConfig):
    """An app of this site. A method that an app does not define adds nothing."""

    room: ClassVar[str] = ""
    """The part of the site (ROOMS) that the app belongs to; empty: to all."""

    awards_titles: ClassVar[bool] = False
    """Whether `titles` may return some."""

    @property
    def is_extra(self) -> bool:
        return self.name.startswith("extras.")

    @property
    def is_in_use(self) -> bool:
        is_chosen = not self.is_extra or self.label in settings.EXTRAS
        return is_chosen and (not self.room or self.room in settings.ROOMS)

    # --- asked of apps that are in use -------------------------------------------------------------------------

    def urls(self) -> Sequence[URLPattern | URLResolver]:
        """The addresses of an extra, from the site's root, are in its urls.py; portal/urls.py has the kernel's."""
        if self.is_extra and module_has_submodule(self.module, "urls"):
            patterns: Sequence[URLPattern | URLResolver] = import_module(f"{self.name}.urls").urlpatterns
            return patterns
        return ()

    def links(self) -> Sequence[Link]:
        """Links to pages of this app."""
        return ()

    def periodic_tasks(self) -> Mapping[str, Periodic]:
        """Periodic tasks, by the names of their entries in the timetable."""
        return {}

    def figures(self) -> Sequence[Part]:
        """Figures of the dashboard and of the public status."""
        return ()

    def collectors(self) -> Sequence[Collector]:
        """Collectors that /metrics reads at each request."""
        return ()

    def consents(self) -> Sequence[ConsentKind]:
        """Consents that volunteers can give."""
        return ()

    def maintenance_jobs(self) -> Sequence[Job]:
        """Jobs that operators can start on the page "Maintenance"."""
        return ()

    def admin_pages(self) -> Sequence[AdminPage]:
        """Pages of the admin that are not lists of a table."""
        return ()

    def admin_group(self) -> StrOrPromise:
        """The group of the app's tables in the admin's sidebar (`portal.dashboard.navigation`); empty: by its room."""
        return ""

    def prepare(self) -> None:
        """Create what has to exist before the site serves. Safe to repeat."""

    def titles(self, user: User, last: dt.date) -> Sequence[str]:
        """What the volunteer had been awarded by the end of a day, in order, to be shown with their credit."""
        return ()

    def make_demo(self, volunteer: User, now: dt.datetime) -> None:
        """Add to the demo data, after all other apps have added their history."""

    # --- asked of all apps ------------------------------------------------------------------------------------------

    def chosen_mails(self) -> Collection[str]:
        """Kinds of mail (`portal.ops.mail_choices.Mail`) that are neither sent nor offered without this app."""
        return ()

    def supplied_texts(self) -> Iterable[str]:
        """Texts that this software supplies where operators may write their own, marked for translation."""
        return ()

    def rights(self) -> Mapping[str, Sequence[str]]:
        """Permissions on this app's tables that operators' roles have, by the role's name."""
        return {}

    def audited(self) -> Sequence[Audited]:
        """Tables of settings whose changes are recorded."""
        return ()

    def forecasts(self) -> Mapping[type[Model], Forecast]:
        """Forecasts of changes of settings, by model."""
        return {}

    def operations(self) -> Mapping[str, RowOperation]:
        """Operations that change settings other than through their forms, by name."""
        return {}

    def change_section(self, change: Change) -> Section | None:
        """This app's section of a change's page."""
        return None

    def two_person_steps(self) -> Mapping[str, StepKind]:
        """Steps that one operator asks for and another one confirms, by name."""
        return {}

    def needs_two_persons(self, row: Model, proposal: Proposal) -> bool:
        """Whether a change that was proposed in another way is such a step, and so is refused there."""
        return False

    def credit_events(
        self, app_id: int | None, since: dt.datetime, until: dt.datetime
    ) -> Iterable[tuple[dt.datetime, str, str]]:
        """Events that charts of an app's credit, or of all apps', mark: when, in words, and the page with more."""
        return ()

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        """The function for each kind of work that volunteers ask for, given its subject's number; safe to repeat."""
        return {}

    def host_merged(self, older: int, newer: int) -> None:
        """Merge this app's rows of a computer's two records, within the transaction that merges these."""

    def account_erased(self, user_id: int, now: dt.datetime) -> None:
        """Erase this app's data, within the transaction that erases the account, while its rows are still there."""

    def host_sections(self, host: Host, now: dt.datetime) -> Iterable[HostSection]:
        """Sections of the computer's page."""
        return ()

    def host_problems(self, user: User, now: dt.datetime) -> Iterable[HostProblem]:
        """Problems with the reports of the user's computers, as support sees them."""
        return ()

    def programs_run(self, host_id: int) -> Iterable[tuple[str, int]]:
        """Apps of this site's own project whose programs the computer has run, each with a version's number."""
        return ()

    def tested_versions(self) -> Iterable[int]:
        """Ids of versions that only testers' computers get."""
        return ()

    def archived_credit(self, owner: str) -> Iterable[ArchivedCredit]:
        """What archived results earned, by owners of this kind (`credit.statistics.check.Owner`)."""
        return ()

    def functions(self) -> Mapping[str, Sequence[str]]:
        """Dotted names of functions that apps of the project may name, by field (`credit.functions.FunctionKind`)."""
        return {}

    def made_functions(self, kind: str) -> Sequence[str]:
        """Further names of functions of a kind that apps of the project may name, and that no module has."""
        return ()

    def made_function(self, kind: str, name: str) -> Any:
        """The function of this name, as `credit.functions` calls it; None if there is none."""
        return None

    def ask_data_copy(self, user: User) -> object:
        """Ask for a copy of the user's data, which only they can fetch; None: this app makes none."""
        return None

    def tidy_up(self, now: dt.datetime) -> None:
        """Remove what is no longer needed, once a day. Safe to repeat."""

    def copied_files(self, user: User) -> Iterable[CopiedFile]:
        """This app's files in a copy of the user's data; by default, for an extra, each row of theirs."""
        return ()


@cache
def site_apps() -> list[SiteApp]:
    """All apps of this site, including extras that are switched off."""
    return [app for app in apps.get_app_configs() if isinstance(app, SiteApp)]


def apps_in_use() -> list[SiteApp]:
    return [app for app in site_apps() if app.is_in_use]


def awards_titles() -> bool:
    """Whether volunteers are awarded anything that others can show."""
    return any(app.awards_titles for app in apps_in_use())


def titles_of(user: User, last: dt.date) -> list[str]:
    """What the volunteer had been awarded by the end of a day."""
    return [title for app in apps_in_use() for title in app.titles(user, last)]
