"""Write each app's initial migration again from its models: `python -m portal.dev.initial_migrations`.

For as long as nothing is deployed. A table is created with all of its columns, constraints and indexes, because Django
builds its models again for each operation, which took most of the time of a new database. What Django's models cannot
say is in `_by_hand.py` beside the migration: operations, and statements that create a table.
"""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import django
from django.apps import apps
from django.db import migrations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from django.db.models import Field

from portal.databases.autodetector import without_texts
from portal.extras import site_apps

# Of other packages: those that refer to our accounts come before our own tables that do, as each of their operations
# would build the models of these again.
_FIRST: Final = [("auth", "0012_alter_user_first_name_max_length"), ("contenttypes", "0002_remove_content_type_name")]
_NEXT: Final = [
    ("account", "0009_emailaddress_unique_primary_email"),
    ("admin", "0003_logentry_add_action_flag_choices"),
    ("mfa", "0003_authenticator_type_uniq"),
    ("portal", "0002_log_proxies"),
]
_MIGRATIONS: Final[dict[tuple[str, str], list[tuple[str, str]]]] = {
    ("portal", "0001_initial"): _FIRST,
    # A proxy of a log that refers to our accounts.
    ("portal", "0002_log_proxies"): [("admin", "0003_logentry_add_action_flag_choices"), ("portal", "0001_initial")],
    ("accounting", "0001_initial"): _NEXT,
    ("credit", "0001_initial"): _NEXT,
    ("scheduler", "0001_initial"): [*_NEXT, ("credit", "0001_initial")],
    ("emulator", "0001_initial"): _NEXT,
}
# Extras may refer to tables of these.
_FOR_EXTRAS: Final = [*_NEXT, ("accounting", "0001_initial"), ("credit", "0001_initial")]
_MIGRATIONS["remote_jobs", "0001_initial"] = [*_FOR_EXTRAS, ("scheduler", "0001_initial")]
_MIGRATIONS["containers", "0001_initial"] = [*_FOR_EXTRAS, ("scheduler", "0001_initial")]
_MIGRATIONS["scripts", "0001_initial"] = _FOR_EXTRAS
_LATER: Final = {("portal", "supportaction"): "0002_log_proxies"}
_CLOSES_CIRCLE: Final = {("workunit", "canonical_result")}


def write(app: str, name: str, state: ProjectState) -> Path:
    """The file of a migration, written from the state of the app's models."""
    folder = Path(apps.get_app_config(app).path, "migrations")
    has_more = name == "0001_initial" and (folder / "_by_hand.py").exists()
    by_hand = import_module(f"{apps.get_app_config(app).name}.migrations._by_hand") if has_more else None
    tables: dict[str, str] = getattr(by_hand, "TABLES", {})
    contents = {
        "initial": True,
        "dependencies": list(_MIGRATIONS.get((app, name), _FOR_EXTRAS)),
        "operations": _operations(_models(app, name, state), tables),
    }
    migration: migrations.Migration = type("Migration", (migrations.Migration,), contents)(name, app)
    text = MigrationWriter(migration, include_header=False).as_string()
    if by_hand:
        text = _with_hand_written(app, text, tables)
    path = folder / f"{name}.py"
    path.write_text(text)
    for command in (["check", "-q", "--fix"], ["format", "-q"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, path], check=True)
    return path


def _models(app: str, name: str, state: ProjectState) -> dict[str, ModelState]:
    return {
        model.name_lower: model
        for (label, model_name), model in sorted(state.models.items())
        if label == app and _LATER.get((label, model_name), "0001_initial") == name
    }


def _operations(models: dict[str, ModelState], tables: dict[str, str]) -> list[Operation]:
    """A CreateModel for each model, after those that it refers to; a column that closes a circle comes at the end."""
    late: list[Operation] = []
    for name, model in models.items():
        for field_name in list(model.fields):
            if (name, field_name) in _CLOSES_CIRCLE:
                late += _taken_out(model, field_name)
    order = TopologicalSorter({name: _references(model, set(models) - {name}) for name, model in models.items()})
    return [*(_created(models[name], tables) for name in order.static_order()), *late]


def _taken_out(model: ModelState, field_name: str) -> list[Operation]:
    """Takes a field, and what needs it, out of a model; the operations that add them."""
    added: list[Operation] = [migrations.AddField(model.name, field_name, model.fields.pop(field_name))]
    for kind, operation in (("indexes", migrations.AddIndex), ("constraints", migrations.AddConstraint)):
        parts = model.options.get(kind, [])
        added += [operation(model.name, part) for part in parts if field_name in repr(part)]
        model.options[kind] = [part for part in parts if field_name not in repr(part)]
    return added


def _references(model: ModelState, names: set[str]) -> list[str]:
    """Models of the same app that must be there before."""
    related = [base for base in model.bases if isinstance(base, str)]
    for field in model.fields.values():
        related += [target for target in _targets(field) if isinstance(target, str)]
    own_targets = {target.lower().removeprefix(f"{model.app_label}.") for target in related}
    return sorted(own_targets & names)


def _targets(field: Field[Any, Any]) -> list[Any]:
    remote: Any = field.remote_field
    return [remote.model, getattr(remote, "through", None)] if remote else []


def _created(model: ModelState, tables: dict[str, str]) -> Operation:
    options = {name: value for name, value in model.options.items() if value != []}
    create = migrations.CreateModel(model.name, list(model.fields.items()), options, model.bases, model.managers)
    if model.name_lower not in tables:
        return create
    statement = migrations.RunSQL(_placeholder(model.name_lower))
    return migrations.SeparateDatabaseAndState([statement], [create])


def _placeholder(name: str) -> str:
    return f"created by hand: {name}"


def _with_hand_written(app: str, text: str, tables: dict[str, str]) -> str:
    for name in tables:
        text = text.replace(f"{_placeholder(name)!r}", f'_by_hand.TABLES["{name}"]')
    text = text.replace(
        "\n\n\nclass Migration",
        f"\nfrom {apps.get_app_config(app).name}.migrations import _by_hand\n\n\nclass Migration",
        1,
    )
    return text.rstrip().removesuffix("]") + "    *_by_hand.OPERATIONS,\n    ]\n"


def main() -> None:
    django.setup()
    state = without_texts(ProjectState.from_apps(apps))
    extras = [(app.label, "0001_initial") for app in site_apps() if app.is_extra and app.models]
    for app, name in [*_MIGRATIONS, *extras]:
        sys.stdout.write(f"{write(app, name, state)}\n")


if __name__ == "__main__":
    main()
