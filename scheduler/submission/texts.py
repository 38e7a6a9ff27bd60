"""What is wrong with jobs that were given, in the page's language; commands and the REST API say it in English."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext_noop

from portal.languages.stored import translated
from scheduler.wire.job_table import Fault

_FAULTS: Final = (
    gettext_noop("Batch %(number)s still has jobs to do."),
    gettext_noop("Batch %(number)s has no failed jobs that can be submitted again."),
    gettext_noop("the upload is no longer here; upload it again"),
    gettext_noop("the table is too long; the limit is %(number)s bytes"),
    gettext_noop("the table is not a text in UTF-8: %(reason)s"),
    gettext_noop("the table is empty; its first line names the columns"),
    gettext_noop("more than %(number)s jobs"),
    gettext_noop("%(number)s cells, but the first line names %(wanted)s columns"),
    gettext_noop("not comma-separated values: %(reason)s"),
    gettext_noop("unknown. Known: %(names)s"),
    gettext_noop("named twice"),
    gettext_noop("this is not a readable ZIP archive: %(reason)s"),
    gettext_noop("%(number)s files in the archive; the limit is %(most)s"),
    gettext_noop("unpacked they have %(number)s bytes; the limit is %(most)s"),
    gettext_noop("twice in the archive"),
    gettext_noop("damaged in the archive: %(reason)s"),
    gettext_noop("%(name)s is damaged in the archive: %(reason)s"),
    gettext_noop("not an ordinary file but a link or something similar"),
    gettext_noop("encrypted"),
    gettext_noop("not compressed by the usual method (deflate)"),
    gettext_noop("not a path of at most %(number)s printable characters without spaces, \\ and :"),
    gettext_noop("its path leads out of the archive"),
    gettext_noop("%(number)s bytes; the limit is %(most)s"),
    gettext_noop("not a text in UTF-8: %(reason)s"),
    gettext_noop("%(app)s takes no more jobs"),
    gettext_noop("was used for another submission"),
    gettext_noop("there is no stored file %(name)s; store it with manage.py store_file"),
    gettext_noop("the storage has lost %(name)s"),
    gettext_noop("a list of 1 to %(number)s jobs"),
    gettext_noop("%(name)s is the name of another job; jobs without a name are numbered"),
    gettext_noop("missing, here and in the defaults"),
    gettext_noop("%(value)s is less than %(name)s, %(least)s"),
    gettext_noop("not a table of fields"),
    gettext_noop("not a number from 1 to below %(most)s"),
    gettext_noop("not a number from 0 to %(most)s"),
    gettext_noop("not a line of at most 2000 characters"),
    gettext_noop("not a name of %(rule)s"),
    gettext_noop("not a whole number from %(low)s to %(high)s"),
    gettext_noop("not a list of at most %(number)s files"),
    gettext_noop("not a table of %(names)s"),
    gettext_noop("give either the name of a stored file or a content"),
    gettext_noop("not a text of at most %(number)s characters"),
    gettext_noop("not a text: it has half of a character"),
    gettext_noop("neither true nor false"),
)
_WHERE: Final = (gettext_noop("line %(number)s"),)


def fault(message: str) -> str:
    """The message, which may follow the name of a field and a colon."""
    field, colon, rest = message.partition(": ")
    found = translated(message, _FAULTS)
    return found if found != message or not colon else f"{field}: {translated(rest, _FAULTS)}"


def shown(found: Fault) -> Fault:
    """The same with its place and its message in the page's language."""
    return replace(found, place=translated(found.place, _WHERE), message=fault(found.message))
