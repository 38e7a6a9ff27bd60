"""Keys with the user beside those without, and a reference to each computer with its owner in place of the former."""

from typing import Any

import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import accounting.models.owner
from accounting.ledger.old_keys import OF_HOSTS, SUFFIX
from portal.upgrades.altering import alter

# The order of the columns keeps searches by the computer or the number alone fast.
KEYS = {
    "accounting_hostledger_pkey": "accounting_hostledger (host_id, user_id)",
    "accounting_hostproject_pkey": "accounting_hostproject (host_id, project_id, user_id)",
    "accounting_answer_pkey": "accounting_answer (host_id, slot, user_id)",
    "accounting_tasklist_pkey": "accounting_tasklist (host_id, user_id)",
    "accounting_hostclient_pkey": "accounting_hostclient (id, user_id)",
    "accounting_note_pkey": "accounting_note (id, user_id)",
    "accounting_settlement_pkey": "accounting_settlement (id, user_id)",
    "accounting_followedtask_pkey": "accounting_followedtask (id, user_id)",
    "accounting_grantedtotal_pkey": "accounting_grantedtotal (id, user_id)",
    "accounting_accounttotal_pkey": "accounting_accounttotal (id, user_id)",
    "accounting_userproject_pkey": "accounting_userproject (id, user_id)",
    "hostclient_host_cpid": "accounting_hostclient (host_id, cpid, user_id)",
    "note_once_a_day": "accounting_note (host_id, day, kind, project_id, detail, user_id) NULLS NOT DISTINCT",
    "settlement_once": "accounting_settlement (host_id, project_id, user_id)",
    "followedtask_once": "accounting_followedtask (host_id, project_id, name, user_id)",
    "grantedtotal_once": "accounting_grantedtotal (project_id, project_host_id, user_id)",
    "accounttotal_once": "accounting_accounttotal (project_id, project_user_id, user_id)",
}
REFERENCES = [(f"accounting_{name}", "host_id") for name in OF_HOSTS] + [("accounting_hostclient", "record_id")]

# Of a run of this migration that was interrupted.
UNFINISHED = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
DEMANDED = "SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'user_id' AND attnotnull"
CONSTRAINT = "SELECT convalidated FROM pg_constraint WHERE conname = %s AND conrelid = %s::regclass"
REFERENCE_ALONE = """
SELECT c.conname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attname = %s
 WHERE c.conrelid = %s::regclass AND c.contype = 'f' AND c.conkey = ARRAY[a.attnum]
"""


def make_keys(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Readers and writers go on meanwhile."""
    for key, columns in KEYS.items():
        found = _found(schema_editor, UNFINISHED, [f"{key}{SUFFIX}"])
        with schema_editor.connection.cursor() as cursor:
            if found and not found[0][0]:
                cursor.execute(f"DROP INDEX CONCURRENTLY {key}{SUFFIX}")
            if not found or not found[0][0]:
                cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {key}{SUFFIX} ON {columns}")


def demand_users(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A constraint that was validated spares the reading of the table while it is locked."""
    for name in OF_HOSTS:
        table = f"accounting_{name}"
        if not _found(schema_editor, DEMANDED, [table]):
            _constrain(schema_editor, table, f"{name}_has_user", "CHECK (user_id IS NOT NULL)")
            alter(table, f"ALTER TABLE {table} ALTER user_id SET NOT NULL, DROP CONSTRAINT {name}_has_user")


def refer_to_owners(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for table, column in REFERENCES:
        reference = (
            f"FOREIGN KEY ({column}, user_id) REFERENCES portal_host (id, owner_id) DEFERRABLE INITIALLY DEFERRED"
        )
        _constrain(schema_editor, table, f"{table}_{column}_user_id", reference)
        for (name,) in _found(schema_editor, REFERENCE_ALONE, [column, table]):
            alter(f"{table}, portal_host", f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def _constrain(schema_editor: BaseDatabaseSchemaEditor, table: str, name: str, constraint: str) -> None:
    """Rows are checked apart from adding it, while others write."""
    found = _found(schema_editor, CONSTRAINT, [name, table])
    if not found:
        alter(f"{table}, portal_host", f"ALTER TABLE {table} ADD CONSTRAINT {name} {constraint} NOT VALID")
    if not found or not found[0][0]:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


def _found(schema_editor: BaseDatabaseSchemaEditor, query: str, values: list[str]) -> list[tuple[Any, ...]]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


STATE: list[Any] = [
    migrations.RemoveConstraint(
        model_name="accounttotal",
        name="accounttotal_once",
    ),
    migrations.RemoveConstraint(
        model_name="followedtask",
        name="followedtask_once",
    ),
    migrations.RemoveConstraint(
        model_name="grantedtotal",
        name="grantedtotal_once",
    ),
    migrations.RemoveConstraint(
        model_name="hostclient",
        name="hostclient_host_cpid",
    ),
    migrations.RemoveConstraint(
        model_name="note",
        name="note_once_a_day",
    ),
    migrations.RemoveConstraint(
        model_name="settlement",
        name="settlement_once",
    ),
    migrations.AddField(
        model_name="answer",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="followedtask",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="grantedtotal",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="hostclient",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="hostledger",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="hostproject",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="note",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="settlement",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AddField(
        model_name="tasklist",
        name="user",
        field=accounting.models.owner.HostOwner(),
    ),
    migrations.AlterField(
        model_name="answer",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="answers",
            to="portal.host",
        ),
    ),
    migrations.AlterField(
        model_name="answer",
        name="pk",
        field=models.CompositePrimaryKey(
            "host_id", "slot", "user_id", blank=True, editable=False, primary_key=True, serialize=False
        ),
    ),
    migrations.AlterField(
        model_name="followedtask",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="followed_tasks",
            to="portal.host",
        ),
    ),
    migrations.AlterField(
        model_name="grantedtotal",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="granted_totals",
            to="portal.host",
        ),
    ),
    migrations.AlterField(
        model_name="hostclient",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="other_clients",
            to="portal.host",
            verbose_name="computer",
        ),
    ),
    migrations.AlterField(
        model_name="hostclient",
        name="record",
        field=models.ForeignKey(
            blank=True,
            db_constraint=False,
            null=True,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="told_apart_from",
            to="portal.host",
            verbose_name="its own record",
        ),
    ),
    migrations.AlterField(
        model_name="hostledger",
        name="host",
        field=models.OneToOneField(
            db_constraint=False,
            on_delete=django.db.models.deletion.CASCADE,
            primary_key=True,
            related_name="ledger",
            serialize=False,
            to="portal.host",
        ),
    ),
    migrations.AlterField(
        model_name="hostproject",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="host_projects",
            to="portal.host",
        ),
    ),
    migrations.AlterField(
        model_name="hostproject",
        name="pk",
        field=models.CompositePrimaryKey(
            "host_id", "project_id", "user_id", blank=True, editable=False, primary_key=True, serialize=False
        ),
    ),
    migrations.AlterField(
        model_name="note",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="notes",
            to="portal.host",
            verbose_name="computer",
        ),
    ),
    migrations.AlterField(
        model_name="settlement",
        name="host",
        field=models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="settlements",
            to="portal.host",
            verbose_name="computer",
        ),
    ),
    migrations.AlterField(
        model_name="tasklist",
        name="host",
        field=models.OneToOneField(
            db_constraint=False,
            on_delete=django.db.models.deletion.CASCADE,
            primary_key=True,
            related_name="task_list",
            serialize=False,
            to="portal.host",
        ),
    ),
    migrations.AddConstraint(
        model_name="accounttotal",
        constraint=models.UniqueConstraint(fields=("project", "project_user_id", "user"), name="accounttotal_once"),
    ),
    migrations.AddConstraint(
        model_name="followedtask",
        constraint=models.UniqueConstraint(fields=("host", "project", "name", "user"), name="followedtask_once"),
    ),
    migrations.AddConstraint(
        model_name="grantedtotal",
        constraint=models.UniqueConstraint(fields=("project", "project_host_id", "user"), name="grantedtotal_once"),
    ),
    migrations.AddConstraint(
        model_name="hostclient",
        constraint=models.UniqueConstraint(fields=("host", "cpid", "user"), name="hostclient_host_cpid"),
    ),
    migrations.AddConstraint(
        model_name="note",
        constraint=models.UniqueConstraint(
            fields=("host", "day", "kind", "project", "detail", "user"), name="note_once_a_day", nulls_distinct=False
        ),
    ),
    migrations.AddConstraint(
        model_name="settlement",
        constraint=models.UniqueConstraint(fields=("host", "project", "user"), name="settlement_once"),
    ),
]


class Migration(migrations.Migration):
    atomic = False
    safe_because = "The old keys stay beside the new ones, which are made concurrently"
    dependencies = [
        ("accounting", "0043_fill_user_of_rows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.RunPython(make_keys),
        migrations.RunPython(demand_users),
        migrations.RunPython(refer_to_owners),
        migrations.SeparateDatabaseAndState(state_operations=STATE),
    ]
