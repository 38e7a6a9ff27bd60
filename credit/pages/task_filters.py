"""Filters of the list of tasks, from its address.

Any address shows a list: invalid filters are left out, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext as _

from credit.models import App
from credit.pages import task_reads
from portal.models import Host, User
from portal.people.access import own_hosts
from portal.web.parameters import unknown_parameters

MAX_ID: Final = 2**63 - 1
_SHOWN_CHARS: Final = 20
_PARAMETERS: Final = ("state", "host", "app", "before")


@dataclass(slots=True)
class TaskFilters:
    """The filters of an address; ``before``: the number of the task that precedes the first one shown."""

    state: str = ""
    host: Host | None = None
    app: App | None = None
    before: int | None = None
    problems: list[str] = field(default_factory=list)


def row_number(text: str) -> int | None:
    """Parse the number of a row from an address; None if it cannot be one."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_ID)):
        return None
    return number if (number := int(text)) <= MAX_ID else None


def read_filters(user: User, params: Mapping[str, str]) -> TaskFilters:
    """Parse the filters of an address; one statement each for a computer and an app."""
    filters = TaskFilters(problems=unknown_parameters(params, _PARAMETERS))
    if (state := params.get("state", "")) in task_reads.STATES:
        filters.state = state
    else:
        states = ", ".join(name for name in task_reads.STATES if name)
        filters.problems.append(
            _("There are no tasks in the state “%(text)s”. States are: %(known)s. Tasks in all states are shown.")
            % {"text": state[:_SHOWN_CHARS], "known": states}
        )
    if text := params.get("host", ""):
        number = row_number(text)
        filters.host = own_hosts(user).filter(pk=number).first() if number is not None else None
        if filters.host is None:
            filters.problems.append(
                _("“%(text)s” is not one of your computers. Tasks of all your computers are shown.")
                % {"text": text[:_SHOWN_CHARS]}
            )
    if text := params.get("app", ""):
        # PostgreSQL text cannot contain NUL.
        filters.app = App.objects.filter(name=text).first() if "\0" not in text else None
        if filters.app is None:
            filters.problems.append(
                _("“%(text)s” is not an app of this project. Tasks of all apps are shown.")
                % {"text": text[:_SHOWN_CHARS]}
            )
    if text := params.get("before", ""):
        filters.before = row_number(text)
        if filters.before is None:
            filters.problems.append(
                _("“%(text)s” is not the number of a task. The list begins with the latest one.")
                % {"text": text[:_SHOWN_CHARS]}
            )
    return filters
