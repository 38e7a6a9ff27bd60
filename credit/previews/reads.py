"""The page of a preview: the changes in words, its progress, and its figures with names and charts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Field, Model
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import App, AppVersion, Preview, Result, StatisticsSnapshot
from credit.previews import texts
from credit.previews.request import KIND
from portal.models import Host
from portal.requested_work import queue
from portal.templatetags.display import significant

_LABELS: Final = {"is_deprecated": _("Withdrawn"), "host_scale_check": _("Apply host-scale probation")}


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting of the app or of a version, before and after."""

    label: str
    before: str
    after: str


def page_of(preview: Preview, now: dt.datetime) -> dict[str, Any]:
    """Return the result, or the preview's state: its place in the queue, its progress, or why it failed."""
    standing = None
    if preview.finished_at is None:
        standing = queue.standings(KIND, [preview.pk], now).get(preview.pk)
    context = {
        "preview": preview,
        "changes": list(_changed(preview)),
        "standing": standing,
        "is_unfinished": standing is not None,
        "result": preview.result,
    }
    return context if preview.result is None else {**context, **_page_figures(preview.result)}


def _changed(preview: Preview) -> Iterator[ChangedSetting]:
    yield from _pairs(App, preview.changes["app"], None)
    versions = AppVersion.objects.filter(app=preview.app_id).select_related("platform", "app")
    names = {str(version.pk): str(version) for version in versions}
    for pk, pairs in preview.changes["versions"].items():
        yield from _pairs(AppVersion, pairs, names.get(pk, pk))
    for pk in preview.changes["reset"]:
        yield ChangedSetting(_statistics_of(names.get(str(pk), pk)), gettext("unchanged"), gettext("reset"))
    for snapshot in StatisticsSnapshot.objects.filter(pk__in=preview.changes.get("restore", ())):
        before = gettext("as before %(time)s UTC") % {"time": f"{snapshot.taken_at:%Y-%m-%d %H:%M}"}
        yield ChangedSetting(_statistics_of(names.get(str(snapshot.app_version_id), "")), gettext("unchanged"), before)


def _statistics_of(version: str) -> str:
    return gettext("Statistics of %(version)s") % {"version": version}


def _pairs(model: type[Model], pairs: Mapping[str, Sequence[Any]], version: str | None) -> Iterator[ChangedSetting]:
    for name, (before, after) in pairs.items():
        field = model._meta.get_field(name)
        assert isinstance(field, Field)  # settings are columns
        label = capfirst(str(_LABELS.get(name) or field.verbose_name))
        if version is not None:
            label = gettext("%(setting)s of %(version)s") % {"setting": label, "version": version}
        yield ChangedSetting(label, _in_words(field, before), _in_words(field, after))


def _in_words(field: Field[Any, Any], value: Any) -> str:
    if value is None:
        return gettext("none")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, float):
        return significant(value)
    return str(dict(field.flatchoices).get(value, value))


def _page_figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures as the page lists and draws them."""
    total = result["total"]
    exact = result["exact"]
    return {
        "begin": dt.datetime.fromtimestamp(result["window"]["begin"], dt.UTC),
        "end": dt.datetime.fromtimestamp(result["window"]["end"], dt.UTC),
        "total": _with_change(total),
        "daily": _with_change({name: total[name] / total["days"] for name in ("before", "after")}),
        "nsame": exact["nworkunits"] - exact["ndifferent"],
        "summary": texts.summary(result),
        "warnings": texts.warnings(result),
        "spread": _spread(result),
        "versions": [_with_change({**row, "name": texts.group_name(row["name"])}) for row in result["versions"]],
        "classes": [_with_change({**row, "name": texts.group_name(row["name"])}) for row in result["classes"]],
        "days": [
            _with_change({"name": day, "before": before, "after": after}) for day, before, after in result["days"]
        ],
        "hosts": _hosts(result["hosts"]),
        "charts": _charts(result),
    }


def _with_change(row: Mapping[str, Any]) -> dict[str, Any]:
    """Add the change to the row: in credits, and in per cent, signed."""
    change = row["after"] - row["before"]
    part = f"{change / row['before']:+.1%}".replace("-", "−").replace("%", "\u202f%") if row["before"] else "–"
    return {**row, "change": change, "percent": part if abs(change) > 1e-9 * row["before"] else gettext("none")}


def _hosts(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name the computers. If computers and tasks were deleted, only their figures are left."""
    hosts = Host.objects.in_bulk([row["host"] for row in rows])
    tasks = set(Result.objects.filter(pk__in=[row["result"] for row in rows]).values_list("pk", flat=True))
    return [
        {
            **_with_change(row),
            "name": hosts[row["host"]].name if row["host"] in hosts else gettext("a computer that was removed"),
            "has_task": row["result"] in tasks,
            "columns": [
                {"title": title, "steps": steps}
                for title, steps in zip((gettext("Now"), gettext("With the change")), texts.steps(row), strict=True)
            ],
        }
        for row in rows
    ]


def _spread(result: Mapping[str, Any]) -> list[tuple[str, int]]:
    return list(zip(texts.spread_labels(), result["spread"], strict=True))


def _charts(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return bars for static/portal/bars.js, one series or two; horizontal if names are long."""

    def pair(id_: str, x: str, rows: Sequence[tuple[str, float, float]], lies: bool = True) -> dict[str, Any]:
        names, before, after = zip(*rows, strict=True) if rows else ((), (), ())
        series = [
            {"name": gettext("now"), "values": before, "colour": "other"},
            {"name": gettext("with the change"), "values": after, "colour": "2"},
        ]
        return {"id": id_, "x": x, "y": gettext("credits"), "labels": names, "series": series, "lies": lies}

    labels, counts = zip(*_spread(result), strict=True)
    spread = {
        "id": "chart-spread",
        "x": gettext("change in a computer’s credit"),
        "y": gettext("computers"),
        "labels": labels,
        "series": [{"name": gettext("computers"), "values": counts, "colour": "2"}],
    }
    return [
        pair("chart-days", gettext("day (UTC)"), result["days"], lies=False),
        pair("chart-versions", gettext("version"), _named(result["versions"])),
        pair("chart-classes", gettext("computers with"), _named(result["classes"])),
        spread,
    ]


def _named(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float]]:
    return [(texts.group_name(row["name"]), row["before"], row["after"]) for row in rows]
