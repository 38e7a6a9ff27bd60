"""The migrations that wait, each judged against the database as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from portal.upgrades import rules

LARGE_ROWS: Final = 500_000
"""A smaller table is locked for about a second at most, and everybody waits for that."""
_ESTIMATED: Final = """
    SELECT coalesce(sum(CASE WHEN part.reltuples < 0 THEN pg_relation_size(part.oid) / 100 ELSE part.reltuples END), 0)
    FROM pg_class part
    WHERE part.oid = to_regclass(quote_ident(%s))
        OR part.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(quote_ident(%s))) WHERE isleaf)
"""
_INVALID: Final = """
    SELECT index.relname, made.indrelid::regclass::text
    FROM pg_index made JOIN pg_class index ON index.oid = made.indexrelid
    WHERE NOT made.indisvalid AND index.relkind = 'i' AND index.relnamespace = current_schema()::regnamespace
        AND index.oid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)
    ORDER BY index.relname
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A migration that was not applied.

    ``stops``: why the site has to be stopped for it; ``notes``: what else is to be known.
    """

    name: str
    stops: tuple[str, ...]
    notes: tuple[str, ...]


def waiting() -> list[Waiting]:
    """All migrations that `migrate` would apply, in its order."""
    executor: Any = MigrationExecutor(connection)  # the stubs leave its state out
    state = executor._create_project_state(with_applied_migrations=True)
    new: set[str] = set()
    found = []
    for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
        findings = rules.judge(migration, state, new)
        because, stop = rules.declared(migration)
        found.append(_described(f"{migration.app_label}.{migration.name}", findings, because, stop))
        new |= rules.created_tables(migration, state)
        state = migration.mutate_state(state, preserve=True)
    return found


def is_empty() -> bool:
    """Whether no migration was ever applied here."""
    return not MigrationExecutor(connection).loader.applied_migrations


def unknown() -> list[str]:
    """Migrations that were applied and that this version does not have: the database is of a newer one."""
    loader = MigrationExecutor(connection).loader
    known = set(loader.disk_migrations) | {old for each in loader.disk_migrations.values() for old in each.replaces}
    newer = set(loader.applied_migrations) - known
    return sorted(f"{app}.{name}" for app, name in newer if app in loader.migrated_apps)


def invalid_indexes() -> list[tuple[str, str]]:
    """Index and table, where an index that was made concurrently was not finished, and is not being made now."""
    with connection.cursor() as cursor:
        cursor.execute(_INVALID)
        return [(str(index), str(table)) for index, table in cursor.fetchall()]


def estimated_rows(table: str) -> int:
    """How many rows a table has with all its partitions, by PostgreSQL's statistics; 0 if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(_ESTIMATED, [table, table])
        return int(cursor.fetchone()[0])


def _described(name: str, findings: list[rules.Finding], because: str, stop: str) -> Waiting:
    if stop:
        return Waiting(name, (stop,), ())
    if because:
        return Waiting(name, (), (because,))
    stops, notes = [], []
    for each in findings:
        nrows = estimated_rows(each.locked) if each.locked else 0
        if each.locked and nrows < LARGE_ROWS:
            notes.append(f"{each.reason}. It locks {each.locked}, which is small (about {nrows:,} rows)")
        elif each.locked:
            stops.append(f"{each.reason}. It locks {each.locked} for long (about {nrows:,} rows)")
        else:
            stops.append(each.reason)
    return Waiting(name, tuple(stops), tuple(notes))
