"""Why an export could not be read, in the reader's language. Rows have it in English."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

from portal.languages import fetch_texts

_REASONS: Final = (
    # Of accounting.wire.statistics and accounting.statistics, after the file and a colon
    gettext_noop("has %(number)s records, but tables.xml says %(most)s"),
    gettext_noop("larger than the limit of %(limit)s bytes"),
    gettext_noop("does not begin with <%(tag)s>"),
    gettext_noop("does not end with </%(tag)s>: it was cut off"),
    gettext_noop("does not end with </%(tag)s>: it was cut off or has a different format"),
    gettext_noop("has other data after </%(tag)s>"),
    gettext_noop("has no update_time"),
    gettext_noop("update_time is in the future"),
    gettext_noop("%(field)s is not a number from %(low)s to %(high)s"),
    gettext_noop(
        "%(number)s of %(all)s records are odd; of the first one, %(field)s is not a number from %(low)s to %(high)s"
    ),
    gettext_noop("is not a gzip file, is damaged, or has other data after it"),
    gettext_noop("unpacks to more than the limit of %(limit)s bytes"),
    gettext_noop("consists of more compressed parts than the limit of %(limit)s"),
    gettext_noop("was cut off: its compressed data have no end"),
    gettext_noop("has a record longer than the limit of %(limit)s bytes"),
    gettext_noop("has more records than the limit of %(limit)s"),
    gettext_noop("is in an unsupported encoding: only UTF-8 and ISO-8859-1 are read"),
    gettext_noop("a record has no end"),
    gettext_noop("there is something else where a record should begin"),
    gettext_noop("has two records with the id %(id)s"),
    gettext_noop("is not newer than the export that was read in the meantime"),
    gettext_noop("the project made a new export in the meantime"),
)


def shown(trouble: str) -> str:
    """A StatisticsError or FetchError, or what was kept of it, in the active language."""
    return fetch_texts.shown(trouble, *_REASONS)
