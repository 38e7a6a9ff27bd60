"""Numbers, sizes, speeds and times on pages: in the format of the visitor's language, with units.

Exact values are on hover. Separators and dates are those of portal/languages/formats.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Final

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.languages import sentences, zones
from portal.languages import supplied as supplied_texts
from portal.languages.numbers import localised as localised
from portal.sign_in.browsers import browser_name

register = template.Library()

MICRO = 1_000_000
_THIN = "\u202f"  # narrow no-break space, between groups of digits
_NBSP = "\u00a0"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_NOTHING: Final = mark_safe("\u2013")  # an en dash for a missing number
_MICRO_SECS_A_DAY = 86_400 * MICRO
_MAX_EXACT = 1e15


def _grouped(value: float, decimals: int = 0) -> str:
    """1234567.8 → "1 234 568" with narrow spaces."""
    return localised(f"{value:,.{decimals}f}")


def _decimals(value: float) -> int:
    size = abs(value)
    return 0 if size == 0 or size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3


def _three_digits(value: float) -> str:
    """At most three significant digits behind and before the point, integers in full: 0.0425, 3.14, 41.2, 1 284."""
    return _digits(value, _decimals(value))


def _digits(value: float | Decimal, decimals: int) -> str:
    """Rounded to so many decimals, without zeros at the end."""
    text = f"{value:,.{decimals}f}"
    return localised(text.rstrip("0").rstrip(".") if "." in text else text)


def credit_text(micro: float) -> str:
    """Micro-credits as credits: whole ones from 100 up, at most three decimals below."""
    if 0 < micro < 500:
        return localised(f"<{_THIN}0.001")
    return _three_digits(micro / MICRO)


def duration_text(micro: float) -> str:
    """Micro-seconds in the unit that reads best: seconds, minutes, or hours (a day of one processor is 24 h)."""
    secs = micro / MICRO
    if secs < 60:
        return f"{_three_digits(secs)}{_NBSP}s"
    if secs < 3570:
        return f"{secs / 60:.0f}{_NBSP}min"
    return f"{_three_digits(secs / 3600)}{_NBSP}h"


@register.filter
def credit(micro: float | None) -> SafeString:
    """Micro-credits as a number of credits, the exact value on hover."""
    return _NOTHING if micro is None else _credit(micro, credit_text(micro))


def _credit(micro: float, text: str) -> SafeString:
    exact = _("%(number)s credits") % {"number": _grouped(micro / MICRO, 6)}
    return format_html('<span title="{}">{}</span>', exact, text)


@register.simple_tag
def credit_parts(total: int, part: int) -> tuple[SafeString, SafeString]:
    """A part of a total and the rest, as `credit` shows them, but rounded so that they add up to the total shown."""
    decimals = _decimals(total / MICRO)
    shown_total, shown_part = (Decimal(f"{micro / MICRO:.{decimals}f}") for micro in (total, part))
    return (
        _credit(part, _digits(shown_part, decimals)),
        _credit(total - part, _digits(shown_total - shown_part, decimals)),
    )


@register.filter
def credits(number: float | None) -> SafeString:
    """A number of credits, in the form of `credit`; one larger than any job can bring is shortened."""
    if number is not None and not abs(number) <= _MAX_EXACT:
        return format_html("{}", significant(number))
    return credit(None if number is None else number * MICRO)


@register.filter
def secs(number: float | None) -> SafeString:
    """Seconds of run time, in the form of `duration`; a dash for values that no clock can have measured."""
    return duration(number * MICRO if number is not None and 0 <= number <= _MAX_EXACT else None)


@register.filter
def significant(number: float | None) -> str:
    """A factor or an average with four significant digits, very large and very small ones as a power of ten."""
    if number is None or not math.isfinite(number):
        return _NOTHING
    if number == 0 or 1e-3 <= abs(number) < 9999.5:
        return localised(f"{number:.4g}")
    if 1 <= abs(number) < 1e6:
        return _grouped(number)
    mantissa, exponent = f"{number:.3e}".split("e")
    return f"{localised(mantissa)}{_THIN}×{_THIN}10{str(int(exponent)).translate(_RAISED)}"


@register.filter
def duration(micro: float | None) -> SafeString:
    """Micro-seconds of processor time as s, min or h; exact seconds and days of processor time on hover."""
    if micro is None:
        return _NOTHING
    exact = _("%(secs)s s = %(days)s days of processor time") % {
        "secs": _grouped(micro / MICRO, 3),
        "days": _three_digits(micro / _MICRO_SECS_A_DAY),
    }
    return format_html('<span title="{}">{}</span>', exact, duration_text(micro))


@register.filter
def roughly(secs: float) -> str:
    """Seconds of an estimate: "a minute" for less than that, else whole minutes, or hours with a decimal."""
    minutes = math.ceil(secs / 60)
    if minutes < 2:
        return _("a minute")
    if minutes < 100:
        return ngettext("%(number)s\u00a0minute", "%(number)s\u00a0minutes", minutes) % {"number": minutes}
    return _("%(number)s\u00a0hours") % {"number": localised(f"{minutes / 60:.1f}")}


@register.filter
def count(number: int | None) -> str:
    """A whole number with thin spaces between groups of digits."""
    return _NOTHING if number is None else _grouped(number)


@register.filter
def plural(number: int | None, words: str) -> str:
    """A whole number with its noun: ``3|plural:"job,jobs"`` → "3 jobs". The catalogue has the nouns as a plural."""
    one, many = words.split(",")
    return f"{count(number)}{_NBSP}{ngettext(one, many, number or 0)}"


@register.filter
def speed(flops: float | None) -> str:
    """FLOPS as GFLOPS, from 1e12 up as TFLOPS."""
    if flops is None or not math.isfinite(flops):
        return _NOTHING
    if flops >= 999.5e9:
        return f"{_three_digits(flops / 1e12)}{_NBSP}TFLOPS"
    return f"{_three_digits(flops / 1e9)}{_NBSP}GFLOPS"


@register.filter
def browser(user_agent: str) -> SafeString:
    """A browser's name, version and system, with its full User-Agent on hover."""
    return format_html('<span title="{}">{}</span>', user_agent, browser_text(user_agent))


@register.filter
def browser_text(user_agent: str) -> str:
    """A browser's name, version and system, as text for mails."""
    return browser_name(user_agent) if user_agent.strip() else _("an unknown program")


@register.filter
def nbytes(number: float | None) -> str:
    """Bytes in binary units: MiB, GiB, TiB."""
    if number is None or not math.isfinite(number):
        return _NOTHING
    for unit, size in (("TiB", 2**40), ("GiB", 2**30)):
        if number >= 0.995 * size:
            return f"{_three_digits(number / size)}{_NBSP}{unit}"
    return f"{_three_digits(number / 2**20)}{_NBSP}MiB"


@register.filter
def percent(fraction: float | None) -> str:
    """A fraction of 1 as whole per cent; more than nothing that rounds to zero is "< 1 %"."""
    if fraction is None:
        return _NOTHING
    if 0 < fraction < 0.005:
        return f"<{_THIN}1{_THIN}%"
    return f"{fraction * 100:.0f}{_THIN}%"


def ago_text(secs: float) -> str:
    """How long ago something was, given the seconds."""
    if secs >= 86_400:
        days = int(secs // 86_400)
        return ngettext("%(number)s\u00a0day ago", "%(number)s\u00a0days ago", days) % {"number": _grouped(days)}
    if secs >= 3600:
        return _("%(number)s\u00a0h ago") % {"number": int(secs // 3600)}
    return _("%(number)s\u00a0min ago") % {"number": int(secs // 60)} if secs >= 60 else _("just now")


@register.filter
def ago(moment: dt.datetime | None) -> SafeString:
    """How long ago something was, with the exact UTC time on hover; "never" for None."""
    if moment is None:
        return format_html("{}", _("never"))
    text = ago_text((timezone.now() - moment).total_seconds())
    return format_html('<time datetime="{}" title="{}">{}</time>', *_exact(moment), text)


def _exact(moment: dt.datetime) -> tuple[str, str]:
    """A point in time for programs, and exactly for people."""
    utc = moment.astimezone(dt.UTC)
    return utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S} UTC"


@register.filter
def moment(value: dt.datetime | None) -> SafeString:
    """A point in time in the visitor's zone, with exact UTC on hover.

    If the zone is unknown, it is in UTC, and a script replaces it with the browser's local time.
    """
    if value is None:
        return _NOTHING
    text = moment_text(value)
    if zones.current_zone() is None:
        return format_html('<time data-local datetime="{}" title="{}">{}</time>', *_exact(value), text)
    return format_html('<time datetime="{}" title="{}">{}</time>', *_exact(value), text)


@register.filter
def moment_text(value: dt.datetime | None) -> str:
    """A point in time as plain text, for attributes and sentences: with "UTC" unless the visitor's zone is known."""
    if value is None:
        return _NOTHING
    text = date_format(zones.local(value).replace(tzinfo=None), "DATETIME_FORMAT")
    return text if zones.current_zone() else f"{text} UTC"


@register.filter
def day(value: dt.date | None) -> str:
    """A day, by default a UTC day, in the language's format."""
    if value is None:
        return _NOTHING
    if isinstance(value, dt.datetime):
        value = value.astimezone(dt.UTC).date()
    return date_format(value, "DATE_FORMAT")


@register.filter
def month(value: dt.date | None) -> str:
    """A month with its year."""
    return _NOTHING if value is None else date_format(value, "YEAR_MONTH_FORMAT")


@register.simple_tag
def amount_cell(amount: int, show: str, kind: str = "") -> SafeString:
    """A table cell with credit, run time (in hours) or a number of jobs; the exact amount in attributes.

    ``data-micro`` is in 1e-6 credits or seconds, ``data-count`` in jobs; ``kind`` names one of the six amounts.
    """
    named = format_html(' data-kind="{}"', kind) if kind else ""
    if show == "jobs":
        return format_html('<td class="num" data-count="{}"{}>{}</td>', amount, named, _grouped(amount))
    if show == "time":
        return format_html(
            '<td class="num" data-micro="{}"{} title="{} s">{}</td>',
            amount,
            named,
            _grouped(amount / MICRO, 6),
            _hours_text(amount),
        )
    return format_html('<td class="num" data-micro="{}"{}>{}</td>', amount, named, credit_text(amount))


def _hours_text(micro: float) -> str:
    hours = micro / MICRO / 3600
    return localised(f"<{_THIN}0.001") if 0 < hours < 0.0005 else _three_digits(hours)


@register.filter
def amount(value: float, show: str) -> str:
    """A quantity of the history page with its unit: "1 284 credits", "41.2 h", "23 tasks"."""
    if show == "jobs":
        number = _three_digits(value) if value % 1 else _grouped(value)
        return ngettext("%(number)s\u00a0task", "%(number)s\u00a0tasks", 1 if value == 1 else 2) % {"number": number}
    if show == "time":
        return duration_text(value)
    return _("%(number)s\u00a0credits") % {"number": credit_text(value)}


register.filter("sentence", sentences.sentence)


@register.filter
def supplied(value: str) -> str:
    """A text that comes with this software, in the page's language; an operator's text as it is."""
    return supplied_texts.shown(value)
