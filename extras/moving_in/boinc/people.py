"""Volunteers: with the same numbers, passwords, keys, preferences and credit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from django.db.models import Exists, OuterRef

from credit.models import UserOpening
from extras.moving_in.boinc import balances
from extras.moving_in.boinc.others import statistics_need_consent
from extras.moving_in.boinc.values import ascii_text, line, text
from extras.moving_in.engine import people, preferences, project_preferences
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, BrokenRow, secs
from extras.moving_in.machinery.steps import Check, Context, RowStep, Translate, Translated
from extras.moving_in.source import Row, Table
from portal.models import MAX_NAME_CHARS, ClientKey, User
from portal.wire import credentials

_HINT_CHARS: Final = 6
_TAKE_BACK_SECS: Final = 7 * 86_400
_HOLDERS: Final = """
SELECT u.id, u.email_addr, (SELECT max(h.rpc_time) FROM host h WHERE h.userid = u.id)
  FROM user u
  JOIN (SELECT lower(trim(email_addr)) AS address FROM user GROUP BY 1 HAVING count(*) > 1) twice
    ON lower(trim(u.email_addr)) = twice.address"""
_TABLE: Final = Table(
    "user",
    {
        **balances.READ,
        "create_time": 0,
        "email_addr": b"",
        "name": b"",
        "authenticator": b"",
        "passwd_hash": b"",
        "cross_project_id": b"",
        "email_validated": 0,
        "send_email": 1,
        "show_hosts": 0,
        "global_prefs": b"",
        "seti_id": 0,
        "project_prefs": b"",
        "previous_email_addr": b"",
        "email_addr_change_time": 0.0,
    },
)
_COLUMNS: Final = {
    "id": "bigint",
    "created_secs": "float8",
    "email": "text",
    "name": "text",
    "client_password": "text",
    "cross_project_id": "text",
    "is_active": "boolean",
    "is_confirmed": "boolean",
    "key_hash": "bytea",
    "key_hint": "text",
    "weak_hash": "bytea",
    "weak_hint": "text",
    "wants_mails": "boolean",
    "shows_hosts": "boolean",
    "is_exported": "boolean",
    "preferences": "text",
    "preferences_at": "float8",
    "project_preferences": "jsonb",
    **balances.COLUMNS,
}
_NUMBER_TAKEN: Final = "an account that was made here has this number"
_MAX_LOCAL: Final = 100_000
"""Accounts of this site whose numbers a rehearsal knows."""
SIGNED_IN_HERE: Final = "u.password NOT LIKE '!%%'"
"""Of an account: by the first sign-in on the web it gets a password for it."""
_CHECKS: Final = (
    Check(
        _NUMBER_TAKEN,
        """
DELETE FROM moving_rows m USING portal_user u
 WHERE u.id = m.id AND NOT EXISTS (SELECT FROM credit_useropening o WHERE o.user_id = m.id) RETURNING m.id""",
        leaves=True,
    ),
    # Else who still reads the former address would be let in.
    Check(
        "has signed in here: its address, name and password here stay",
        f"""
UPDATE moving_rows m SET email = u.email, name = u.name, client_password = ''
  FROM portal_user u WHERE u.id = m.id AND {SIGNED_IN_HERE} RETURNING m.id""",
    ),
    *(
        Check(
            "another account here has this address: it logs in with its keys only",
            f"""
UPDATE moving_rows m SET email = replace('{people.PLACEHOLDER}', '{{number}}', m.id::text), client_password = ''
  FROM {others} RETURNING m.id""",
        )
        for others in (
            "portal_user u WHERE u.email = m.email AND u.id <> m.id",
            # MySQL took these addresses to be different.
            """(SELECT id, row_number() OVER (PARTITION BY email ORDER BY id) AS place FROM moving_rows) o
 WHERE o.id = m.id AND o.place > 1""",
        )
    ),
)
# What this site made of a password itself stays.
_IS_IMPORTED: Final = (
    rf"NOT ({SIGNED_IN_HERE}) AND u.client_password ~ '^(bcrypt\$|pbkdf2_sha256\${people.MD5_ROUNDS}\$|$)'"
)
_MERGE: Final = (
    f"""
INSERT INTO portal_user AS u (id, password, is_superuser, is_staff, email, name, client_password, client_password_email,
       next_client_password, next_client_password_email, cross_project_id, is_active, created_at)
SELECT id, '!' || md5(random()::text), false, false, email, name, client_password,
       CASE WHEN client_password = '' THEN '' ELSE email END, '', '',
       coalesce(nullif(cross_project_id, ''), replace(gen_random_uuid()::text, '-', '')), is_active,
       to_timestamp(created_secs)
  FROM moving_rows ORDER BY id
    ON CONFLICT (id) DO UPDATE
   SET email = excluded.email, name = excluded.name, is_active = excluded.is_active,
       client_password = CASE WHEN {_IS_IMPORTED} THEN excluded.client_password ELSE u.client_password END,
       client_password_email = CASE WHEN {_IS_IMPORTED} THEN excluded.client_password_email
                                    ELSE u.client_password_email END
 WHERE (u.email, u.name, u.is_active) IS DISTINCT FROM (excluded.email, excluded.name, excluded.is_active)
    OR ({_IS_IMPORTED} AND u.client_password <> excluded.client_password)""",
    """
INSERT INTO account_emailaddress (user_id, email, "primary", verified)
SELECT m.id, m.email, true, m.is_confirmed FROM moving_rows m
 WHERE m.email NOT LIKE '%%@moved.invalid'
   AND NOT EXISTS (SELECT FROM account_emailaddress a WHERE a.user_id = m.id) ORDER BY m.id
    ON CONFLICT DO NOTHING""",
    """
DELETE FROM account_emailaddress a USING moving_rows m WHERE a.user_id = m.id AND m.email LIKE '%%@moved.invalid'""",
    """
UPDATE account_emailaddress a SET email = m.email, verified = m.is_confirmed
  FROM moving_rows m
 WHERE a.user_id = m.id AND a."primary" AND a.email <> m.email AND m.email NOT LIKE '%%@moved.invalid'
   AND NOT EXISTS (SELECT FROM account_emailaddress o WHERE o.email = m.email AND (o.verified OR o.user_id = m.id))""",
    f"""
UPDATE portal_clientkey k SET revoked_at = %(now)s
  FROM moving_rows m
 WHERE k.user_id = m.id AND k.origin = '{ClientKey.Origin.IMPORTED.value}' AND k.revoked_at IS NULL
   AND k.key_hash IS DISTINCT FROM m.key_hash AND k.key_hash IS DISTINCT FROM m.weak_hash""",
    f"""
INSERT INTO portal_clientkey (user_id, origin, key_hash, hint, created_at, last_used_at)
SELECT m.id, '{ClientKey.Origin.IMPORTED.value}', k.hash, k.hint, to_timestamp(m.created_secs),
       to_timestamp(m.created_secs)
  FROM moving_rows m
 CROSS JOIN LATERAL (VALUES (m.key_hash, m.key_hint), (m.weak_hash, m.weak_hint)) k(hash, hint)
 WHERE k.hash IS NOT NULL ORDER BY m.id
    ON CONFLICT (key_hash) DO NOTHING""",
    """
INSERT INTO portal_mailchoice (user_id, silence, silent_days, no_work, failing_jobs, weekly_summary, lapsed)
SELECT id, false, 3, false, false, false, false FROM moving_rows WHERE NOT wants_mails ORDER BY id
    ON CONFLICT DO NOTHING""",
    """
INSERT INTO credit_exportconsent (user_id, exports_statistics, shows_hosts, changed_at)
SELECT id, is_exported, shows_hosts, to_timestamp(created_secs) FROM moving_rows ORDER BY id
    ON CONFLICT DO NOTHING""",
    """
INSERT INTO scheduler_userpreferences AS p (user_id, mod_time, text)
SELECT id, preferences_at, preferences FROM moving_rows WHERE preferences IS NOT NULL ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET mod_time = excluded.mod_time, text = excluded.text
 WHERE p.mod_time < excluded.mod_time""",
    # What was saved here stays.
    """
INSERT INTO scheduler_userpreferences AS p (user_id, of_project)
SELECT id, project_preferences FROM moving_rows WHERE project_preferences IS NOT NULL ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET of_project = excluded.of_project WHERE p.of_project = '{}'""",
    *balances.statements("user"),
)


def translator(
    context: Context,
    hash_of_weak_key: Callable[[str], bytes] = credentials.weak_key_hash,
    *,
    has_export: bool = True,
) -> Translate:
    """``has_export``: whether the site lets others have statistics of its people."""
    unaddressed, local = _without_address(context), _local_numbers()
    is_exported = has_export and not statistics_need_consent(context)
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        number = row["id"]
        if number in local:
            raise BrokenRow(_NUMBER_TAKEN)
        email, is_own = _address(row, tally, unaddressed)
        authenticator = ascii_text(row, "authenticator")
        is_active = not authenticator.startswith(("x", "deleted_"))
        if not is_active:
            tally.tell("disabled by an operator, or erased: taken as a closed account", number)
        key = people.strong_key(authenticator)
        if is_active and not key:
            tally.tell("account key is not 32 hexadecimal digits: the owner has to attach their clients again", number)
        password = _password(row, email if is_own else "", authenticator, tally)
        weak = people.weak_key(number, authenticator, row["passwd_hash"] or b"") if key else ""
        preferences_found = _preferences(row, tally, now)
        created = secs(row["create_time"], now)
        _tell_what_has_no_place(row, tally, now)
        return (
            *(number, created or FIRST_SECS, email, _name(row, tally) if is_active else "", password),
            *(people.cross_project_id(ascii_text(row, "cross_project_id")), is_active, bool(row["email_validated"])),
            *(credentials.key_hash(key) if key else None, key[:_HINT_CHARS]),
            *(hash_of_weak_key(weak) if weak else None, weak[:_HINT_CHARS]),
            *(bool(row["send_email"]), bool(row["show_hosts"]), is_exported and is_active),
            *(preferences_found or (None, None)),
            _project_preferences(row, tally),
            *balances.values(row, tally, now),
        )

    return translate


def _local_numbers() -> set[int]:
    """Accounts that no import brought: a rehearsal tells of them, too."""
    brought = UserOpening.objects.filter(user=OuterRef("pk"))
    return set(User.objects.filter(~Exists(brought)).values_list("pk", flat=True)[:_MAX_LOCAL])


def _without_address(context: Context) -> set[int]:
    quiet = Tally()
    rows = context.source.all(_HOLDERS)
    return people.without_address(
        people.Holder(number, people.address(line({"id": number, "e": raw}, "e", quiet, 254)), last or 0)
        for number, raw, last in rows
    )


def _address(row: Row, tally: Tally, unaddressed: set[int]) -> tuple[str, bool]:
    """The address, and whether it is one that its owner can log in with."""
    stored = text(row, "email_addr", tally, 254)
    email = people.address(stored)
    if email and row["id"] not in unaddressed:
        return email, True
    if email:
        tally.tell("address differs from another account's only by case: it logs in with its keys only", row["id"])
    elif not stored.startswith("deleted_"):
        tally.tell("no e-mail address: it logs in with its keys only", f"{row['id']} {stored}")
    return people.PLACEHOLDER.format(number=row["id"]), False


def _name(row: Row, tally: Tally) -> str:
    name = line(row, "name", tally, MAX_NAME_CHARS)
    if not name:
        tally.tell("no name", row["id"])
    elif "<" in name:
        tally.tell("HTML in a name, which pages show as text", f"{row['id']} {name}")
    return name


def _password(row: Row, email: str, authenticator: str, tally: Tally) -> str:
    if not email:
        return ""
    encoded, fault = people.password(ascii_text(row, "passwd_hash"), email, authenticator, row["id"])
    if fault:
        tally.tell(f"{fault}: a new one has to be set by mail", row["id"])
    return encoded


def _preferences(row: Row, tally: Tally, now: float) -> preferences.Preferences | None:
    stored = text(row, "global_prefs", tally, preferences.MAX_CHARS)
    if not stored.strip():
        return None
    found = preferences.read(stored, now)
    if found is None:
        tally.tell("preferences that no client could read: left", row["id"])
    return found


def _project_preferences(row: Row, tally: Tally) -> str | None:
    stored = text(row, "project_prefs", tally, project_preferences.MAX_CHARS)
    places = project_preferences.read(stored)
    if places is None:
        if stored.strip():
            tally.tell("preferences for the project that nobody could read: left", row["id"])
        return None
    return json.dumps(places)


def _tell_what_has_no_place(row: Row, tally: Tally, now: float) -> None:
    if row["seti_id"]:
        tally.tell("its own jobs ran only on its own computers: not supported here", row["id"])
    if row["previous_email_addr"] and now - row["email_addr_change_time"] < _TAKE_BACK_SECS:
        tally.tell("changed its address in the last 7 days: the former one can no longer take it back", row["id"])


PEOPLE: Final = RowStep("people", _TABLE, _COLUMNS, translator, _MERGE, _CHECKS)
