"""The settings that a preview covers, and an app's settings before and after a change."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db.models import Field, Model

from credit.engine.rules import LIMITS
from credit.models import App, AppVersion, StatisticsSnapshot

APP_FIELDS: Final = (
    "credit_system",
    "rule_set",
    "host_scale_check",
    "fixed_credit",
    "fixed_credit_per_flop",
    "max_credited_secs",
    "actual_flops_scale",
    "benchmark_scale",
    "replica_rule",
    "version_average",
    *(name for name in LIMITS if name != "min_replication_chance"),
)
"""The settings of an app that change the credit of jobs already done. Others decide which jobs are done."""
VERSION_FIELDS: Final = ("is_deprecated", "cross_project_scale")

Changes = Mapping[str, Any]
"""Changes in the format of ``Preview.changes``."""


class UnknownSettingError(ValueError):
    """A change that no preview can show; the message names it."""


def checked(app: App, changes: Changes) -> dict[str, Any]:
    """Validate and normalise the changes: numbers of versions as text, all three parts, values that JSON has.
    ``restore``, the numbers of the stored statistics to restore, is left out if there are none.

    Raises UnknownSettingError for a setting, version or value that does not belong to this app.
    """
    if unknown := set(changes) - {"app", "versions", "reset", "restore"}:
        raise UnknownSettingError(f"not a kind of change: {', '.join(sorted(unknown))}")
    ids = set(AppVersion.objects.filter(app=app).values_list("pk", flat=True))
    versions = {str(pk): _pairs(AppVersion, VERSION_FIELDS, pairs) for pk, pairs in changes.get("versions", {}).items()}
    reset = sorted({int(pk) for pk in changes.get("reset", ())})
    if foreign := ({int(pk) for pk in versions} | set(reset)) - ids:
        raise UnknownSettingError(f"not a version of {app}: {', '.join(map(str, sorted(foreign)))}")
    restore = sorted({int(pk) for pk in changes.get("restore", ())})
    if StatisticsSnapshot.objects.filter(pk__in=restore, app_version__in=ids).count() != len(restore):
        raise UnknownSettingError(f"not stored statistics of a version of {app}")
    return {
        "app": _pairs(App, APP_FIELDS, changes.get("app", {})),
        "versions": {pk: pairs for pk, pairs in sorted(versions.items()) if pairs},
        "reset": reset,
        **({"restore": restore} if restore else {}),
    }


def _pairs(model: type[Model], names: tuple[str, ...], pairs: Mapping[str, Any]) -> dict[str, list[Any]]:
    cleaned = {}
    for name, pair in sorted(pairs.items()):
        if name not in names:
            raise UnknownSettingError(f"{name} does not change the credit of jobs already done")
        before, after = pair
        field = model._meta.get_field(name)
        assert isinstance(field, Field)  # settings are columns
        try:
            cleaned[name] = [field.to_python(before), field.clean(after, None)]
        except ValidationError as error:
            raise UnknownSettingError(f"{name}: {' '.join(error.messages)}") from error
    return cleaned


def as_set(app: App, versions: list[AppVersion], changes: Changes, place: int) -> tuple[App, list[AppVersion]]:
    """Return copies of the app and its versions with the settings before (``place`` 0) or after (1) the change."""
    changed = copy(app)
    for name, pair in changes["app"].items():
        setattr(changed, name, pair[place])
    copies = []
    for version in versions:
        one = copy(version)
        for name, pair in changes["versions"].get(str(version.pk), {}).items():
            setattr(one, name, pair[place])
        copies.append(one)
    return changed, copies
