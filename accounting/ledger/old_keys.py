"""The unique keys without the user, which the version before this one needs; and their end.

`migrate` makes the new keys beside them, and a trigger that gives the rows of the old version their user. A site
without accounts has no old version; any other drops them by `manage.py drop_old_keys`. The next release will do so by
a migration.
"""

from __future__ import annotations

from typing import Final

from django.db import connection

from portal.upgrades.altering import alter

SUFFIX: Final = "_with_user"
OF_HOSTS: Final = (
    "hostledger", "hostproject", "answer", "tasklist", "hostclient", "note", "settlement", "followedtask",
    "grantedtotal",
)  # fmt: skip
"""The tables whose rows get their user from their computer."""
_PRIMARY: Final = (*OF_HOSTS, "accounttotal", "userproject")
_UNIQUE: Final = {
    "hostclient": "hostclient_host_cpid",
    "note": "note_once_a_day",
    "settlement": "settlement_once",
    "followedtask": "followedtask_once",
    "grantedtotal": "grantedtotal_once",
    "accounttotal": "accounttotal_once",
}
_WAITING: Final = "SELECT to_regclass(%s) IS NOT NULL"


def drop_old_keys() -> int:
    """Let the new keys take the old ones' places, one table after the other; how many. Safe to repeat.

    No old version may run any more. Locks each table for a moment; OperationalError if others hold one all the time.
    """
    nkeys = 0
    for name in _PRIMARY:
        table = f"accounting_{name}"
        keys = {f"{table}_pkey": "PRIMARY KEY"} | ({_UNIQUE[name]: "UNIQUE"} if name in _UNIQUE else {})
        changes = [
            f"ALTER TABLE {table} DROP CONSTRAINT {key}, ADD CONSTRAINT {key} {kind} USING INDEX {key}{SUFFIX}"
            for key, kind in keys.items()
            if _is_waiting(f"{key}{SUFFIX}")
        ]
        triggers = [f"DROP TRIGGER IF EXISTS {each} ON {table}" for each in ("user_of_host", "user_of_other_host")]
        alter(table, *changes, *triggers)
        nkeys += len(changes)
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS accounting_user_of_host")
    return nkeys


def _is_waiting(index: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [index])
        return bool(cursor.fetchone()[0])
