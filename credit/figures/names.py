"""Display names of apps and versions in figures. Several apps may have the same name; their short names are unique."""

from __future__ import annotations

from collections import Counter
from typing import Any

from credit.models import App, AppVersion


def app_names(key: str = "pk") -> dict[Any, str]:
    """Return the names of all apps by ``key``, with the short name added if several share a name. One statement."""
    rows = list(App.objects.values_list(key, "user_friendly_name", "name"))
    often = Counter(title for _, title, _ in rows)
    return {key: f"{title[:50]} ({name})" if often[title] > 1 else title for key, title, name in rows}


def by_short_name() -> dict[str, str]:
    """Return the names of all apps by their short names."""
    return app_names("name")


def version_names(versions: dict[int, AppVersion], apps: dict[int, str]) -> dict[int, str]:
    """Return the versions' names by id: app, number and plan class, platform."""
    return {
        pk: f"{apps[version.app_id]} {version.number_label} {version.platform.name}"
        for pk, version in versions.items()
        if version.app_id in apps
    }


def by_version() -> dict[int, str]:
    """Return the names of all versions by id. Two statements."""
    return version_names(all_versions(), app_names())


def all_versions() -> dict[int, AppVersion]:
    """Return all versions with their platforms, by id. One statement."""
    return {version.pk: version for version in AppVersion.objects.select_related("platform")}
