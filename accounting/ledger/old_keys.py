"""The unique keys without the user, which the version before this one needs; and their end.

`migrate` makes the new keys beside them, and a trigger that gives the rows of the old version their user. A site
without accounts has no old version; any other drops them by `manage.py drop_old_keys`. The next release will do so by
a migration.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import connection

from portal.databases.short_waits import in_short_waits
from portal.upgrades.altering import hold

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
    dropped: set[str] = set()
    for name in _PRIMARY:
        in_short_waits(partial(_drop, name, dropped))
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS accounting_user_of_host")
    return len(dropped)


def _drop(name: str, dropped: set[str]) -> None:
    table = f"accounting_{name}"
    hold(table)
    keys = {f"{table}_pkey": "PRIMARY KEY"} | ({_UNIQUE[name]: "UNIQUE"} if name in _UNIQUE else {})
    # An attempt before this one may have been undone.
    dropped.difference_update(keys)
    with connection.cursor() as cursor:
        for key, kind in keys.items():
            # Another run may have done it while this one waited.
            cursor.execute(_WAITING, [f"{key}{SUFFIX}"])
            if cursor.fetchone()[0]:
                new = f"ADD CONSTRAINT {key} {kind} USING INDEX {key}{SUFFIX}"
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key}, {new}")
                dropped.add(key)
        for trigger in ("user_of_host", "user_of_other_host"):
            cursor.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {table}")
