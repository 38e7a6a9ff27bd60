"""Whether the version of the site that is running survives a migration, and what of it locks a table for long.

Rules over Django's operations. Those that no rule knows (SQL and Python of our own) count as unsafe until the migration
declares otherwise, by one of two attributes:

* ``safe_because``: why the old version survives it after all, and no table is locked for long;
* ``needs_stop``: why the site has to be stopped for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.postgres import operations as postgres
from django.db import connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState, StateApps
from django.db.models.expressions import Value
from django.db.models.fields import NOT_PROVIDED

HARMLESS: Final = (
    operations.CreateModel,
    operations.AlterModelOptions,
    operations.AlterModelManagers,
    operations.AlterModelTableComment,
    operations.RemoveConstraint,
    operations.RemoveIndex,
    operations.RenameIndex,
    postgres.AddConstraintNotValid,
    postgres.AddIndexConcurrently,
    postgres.CreateExtension,
    postgres.RemoveIndexConcurrently,
    postgres.ValidateConstraint,
)
REMOVED: Final = (
    operations.RemoveField,
    operations.RenameField,
    operations.RenameModel,
    operations.DeleteModel,
    operations.AlterModelTable,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a migration is no safe one; ``locked``: the table that it locks for long if it is large, else empty."""

    reason: str
    locked: str = ""


def judge(migration: Migration, before: ProjectState, new: Collection[str] = ()) -> list[Finding]:
    """What a migration does to the version that is running, its own words not counted.

    ``before``: the state that it begins with, which is not changed; ``new``: tables that this version does not have.
    """
    return _judged_all(migration.operations, migration.app_label, before, set(new))


def _judged_all(steps: Sequence[Operation], app: str, before: ProjectState, made: set[str]) -> list[Finding]:
    found: list[Finding] = []
    state = before.clone()
    for operation in steps:
        after = state.clone()
        operation.state_forwards(app, after)
        if isinstance(operation, operations.SeparateDatabaseAndState):
            found += _judged_all(operation.database_operations, app, state, made)
        else:
            made |= _created(operation, app, after)
            found += _judged(operation, app, state, after, made)
        state = after
    return found


def created_tables(migration: Migration, before: ProjectState) -> set[str]:
    """The tables that a migration makes."""
    made: set[str] = set()
    state = before.clone()
    for operation in migration.operations:
        operation.state_forwards(migration.app_label, state)
        made |= _created(operation, migration.app_label, state)
    return made


def declared(migration: Migration) -> tuple[str, str]:
    """``safe_because`` and ``needs_stop`` of a migration; empty: not declared."""
    return str(getattr(migration, "safe_because", "")), str(getattr(migration, "needs_stop", ""))


def _created(operation: Operation, app: str, after: ProjectState) -> set[str]:
    return {_table(operation, app, after)} if isinstance(operation, operations.CreateModel) else set()


def _model(state: ProjectState, app: str, name: str) -> type[models.Model]:
    apps: StateApps = state.apps
    return apps.get_model(app, name)


def _judged(
    operation: Operation, app: str, before: ProjectState, after: ProjectState, made: Collection[str]
) -> Iterator[Finding]:
    if isinstance(operation, HARMLESS):
        return
    what = operation.describe()
    if isinstance(operation, (operations.RunSQL, operations.RunPython)):
        if not _does_nothing(operation):
            yield Finding(f"{what}: not known to the rules")
        return
    if isinstance(operation, REMOVED):
        if _table(operation, app, before) not in made:
            yield Finding(f"{what}: the old version uses what is removed or renamed")
        return
    table = _table(operation, app, after)
    if table in made:
        return
    if isinstance(operation, operations.AddField):
        yield from _added(what, operation.field, table)
    elif isinstance(operation, operations.AlterField):
        old = _model(before, app, operation.model_name)._meta.get_field(operation.name)
        new = _model(after, app, operation.model_name)._meta.get_field(operation.name)
        yield from _altered(what, old, new, table)
    elif isinstance(operation, operations.AddIndex):
        yield Finding(f"{what}: use AddIndexConcurrently, in a migration with atomic = False", table)
    elif isinstance(operation, operations.AddConstraint):
        yield Finding(f"{what}: use AddConstraintNotValid, and ValidateConstraint in a later migration", table)
    elif isinstance(operation, operations.AlterUniqueTogether):
        yield Finding(f"{what}: an index is made while nobody can write", table)
    else:
        yield Finding(f"{what}: not known to the rules")


def _does_nothing(operation: operations.RunSQL | operations.RunPython) -> bool:
    if isinstance(operation, operations.RunSQL):
        return operation.sql == operations.RunSQL.noop
    return operation.code is operations.RunPython.noop


def _table(operation: Any, app: str, state: ProjectState) -> str:
    """The table of an operation, empty if it has none."""
    name = getattr(operation, "model_name", None) or getattr(operation, "old_name", None)
    model = state.models.get((app, str(name or getattr(operation, "name", "")).lower()))
    return str(model.options.get("db_table") or f"{app}_{model.name_lower}") if model else ""


def _added(what: str, field: Any, table: str) -> Iterator[Finding]:
    if field.many_to_many:
        return
    if isinstance(field, models.GeneratedField):
        yield Finding(f"{what}: a generated column writes the whole table anew", table)
        return
    default = field.db_default
    if not field.null and default is NOT_PROVIDED:
        yield Finding(f"{what}: the old version cannot insert rows without this column; give it a db_default, or null")
    if default is not NOT_PROVIDED and not _is_constant(default):
        yield Finding(f"{what}: a default that is no constant writes the whole table anew", table)
    if _has_index(field):
        yield Finding(f"{what}: its index is made while nobody can write; add the index concurrently", table)


def _is_constant(default: object) -> bool:
    return isinstance(default, Value) or not hasattr(default, "resolve_expression")


def _has_index(field: Any) -> bool:
    return bool(field.unique or field.db_index)


def _altered(what: str, old: Any, new: Any, table: str) -> Iterator[Finding]:
    """Findings of a column's change. A longer or unbounded text, null and a new default change no row."""
    if old.column != new.column:
        yield Finding(f"{what}: the old version uses the column {old.column}")
    if old.null and not new.null:
        yield Finding(f"{what}: the old version may store NULL there")
    if old.db_type(connection) != new.db_type(connection) and not _is_longer_text(old, new):
        yield Finding(f"{what}: the old version expects another type, and the whole table is written anew")
    if _has_index(new) and not _has_index(old):
        yield Finding(f"{what}: its index is made while nobody can write; add the index concurrently", table)


def _is_longer_text(old: Any, new: Any) -> bool:
    if not (isinstance(old, models.CharField) and isinstance(new, (models.CharField, models.TextField))):
        return False
    return new.max_length is None or (old.max_length is not None and new.max_length >= old.max_length)
