"""Volunteers of Science United: as those of a BOINC project, and what only an account manager asks them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import Final

from extras.moving_in.boinc import people
from extras.moving_in.boinc.values import ascii_text, text
from extras.moving_in.engine import presets
from extras.moving_in.engine.people import strong_key
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import secs, whole
from extras.moving_in.machinery.steps import Check, Context, RowStep, Translate, Translated, refers_to
from extras.moving_in.source import Row, Table
from portal.models import STATUS_DAYS
from portal.ops.mail_choices import Mail
from portal.wire import credentials
from portal.wire.keywords import KEYWORDS

_PREFERENCES_CHARS: Final = 1 << 16
_BOINC: Final = people.PEOPLE.table
UNKNOWN_OWNER: Final = "its account is missing here"
OWNER: Final = "(SELECT u.id FROM user u WHERE u.id = t.{})"
"""What is read with a row, so that a rehearsal tells of those whose account is gone."""

# Whoever has status mails gets them at this address, so it is as good as a confirmed one. Presets are no preferences
# that clients could read; the next step reads them.
PEOPLE: Final = replace(
    people.PEOPLE,
    table=replace(
        _BOINC,
        columns={
            name: default
            for name, default in _BOINC.columns.items()
            if name not in ("email_validated", "global_prefs", "total_credit", "expavg_credit")
        },
        more={
            **_BOINC.more,
            "email_validated": "t.email_validated <> 0 OR t.send_email <> 0",
            "global_prefs": "''",
            "total_credit": "0e0",
            "expavg_credit": "0e0",
        },
    ),
    # Of an account manager's clients some have this key alone: it is as good as the other one there. Nobody agreed to
    # be in statistics of other sites, as it has no export.
    translator=partial(people.translator, hash_of_weak_key=credentials.key_hash, has_export=False),
)


def _chosen(sign: str) -> str:
    return f"(SELECT group_concat(k.keyword_id) FROM su_user_keyword k WHERE k.user_id = t.id AND k.yesno {sign} 0)"


def _translator(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        key = strong_key(ascii_text(row, "authenticator"))
        chosen = presets.read(text(row, "global_prefs", tally, _PREFERENCES_CHARS), now)
        days = whole(row["send_email"], 0, 1 << 31) or 0
        return (
            *(row["id"], _nearest(days), secs(row["seti_last_result_time"], now + 400 * 86_400)),
            *(bool(row["donated"]), _keywords(row, "yes", tally), _keywords(row, "no", tally)),
            *((json.dumps(chosen.chosen), chosen.saved_secs or now) if chosen else (None, None)),
            unsubscribe_hash(key) if key else None,
        )

    return translate


def _nearest(days: int) -> int:
    """The interval of status mails that can be chosen and is not shorter, but for the longest."""
    choices = [choice for choice, _name in STATUS_DAYS]
    return int(next((choice for choice in choices if choice >= days), choices[-1]))


def unsubscribe_hash(key: str) -> bytes:
    """Of the code in the links of old mails."""
    code = hashlib.md5(f"{key}oogabooga".encode(), usedforsecurity=False).hexdigest()
    return credentials.key_hash(code)


def _keywords(row: Row, name: str, tally: Tally) -> list[int]:
    numbers = [int(number) for number in (row[name] or b"").decode().split(",") if number]
    known = [number for number in numbers if number in KEYWORDS]
    if len(known) < len(numbers):
        tally.tell("keywords that BOINC's list does not have: left out", row["id"])
    return known


CHOICES: Final = RowStep(
    "choices of people",
    Table(
        "user",
        {"authenticator": b"", "send_email": 0, "seti_last_result_time": 0, "donated": 0, "global_prefs": b""},
        more={"yes": _chosen(">"), "no": _chosen("<")},
    ),
    {
        "id": "bigint",
        "status_days": "smallint",
        "next_mail_secs": "float8",
        "is_shown": "boolean",
        "keywords_yes": "integer[]",
        "keywords_no": "integer[]",
        "preferences": "jsonb",
        "preferences_secs": "float8",
        "unsubscribe_hash": "bytea",
    },
    _translator,
    (
        """
INSERT INTO accounting_accountsettings AS s (user_id, preferences, preferences_at, keywords_yes, keywords_no,
       team_name, no_project_notices)
SELECT id, coalesce(preferences, '{}'), to_timestamp(preferences_secs), keywords_yes, keywords_no, '', false
  FROM moving_rows ORDER BY id
    ON CONFLICT (user_id) DO UPDATE
   SET preferences = excluded.preferences, preferences_at = excluded.preferences_at,
       keywords_yes = excluded.keywords_yes, keywords_no = excluded.keywords_no
 WHERE (s.preferences, s.keywords_yes, s.keywords_no)
       IS DISTINCT FROM (excluded.preferences, excluded.keywords_yes, excluded.keywords_no)""",
        """
INSERT INTO portal_mailchoice (user_id, silence, silent_days, no_work, failing_jobs, weekly_summary, status_days,
       no_computer)
SELECT id, false, 3, false, false, false, status_days, status_days > 0 FROM moving_rows ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET status_days = excluded.status_days, no_computer = excluded.no_computer""",
        # The next mail comes when it would have come.
        f"""
INSERT INTO portal_sentmail (user_id, kind, key, sent_at)
SELECT id, '{Mail.STATUS.value}', 'before', to_timestamp(next_mail_secs) - make_interval(days => status_days)
  FROM moving_rows WHERE status_days > 0 AND next_mail_secs IS NOT NULL ORDER BY id
    ON CONFLICT (user_id, kind, key) DO UPDATE SET sent_at = excluded.sent_at""",
        """
INSERT INTO top_lists_listedvolunteer (user_id, shown_name, agreed_at, total_credit, recent_credit, counted_at)
SELECT id, '', %(now)s, 0, 0, %(now)s FROM moving_rows WHERE is_shown ORDER BY id ON CONFLICT DO NOTHING""",
        """
INSERT INTO moving_in_unsubscribecode AS c (user_id, code_hash)
SELECT id, unsubscribe_hash FROM moving_rows WHERE unsubscribe_hash IS NOT NULL ORDER BY id
    ON CONFLICT (user_id) DO UPDATE SET code_hash = excluded.code_hash WHERE c.code_hash <> excluded.code_hash""",
    ),
    (
        refers_to("credit_useropening", "user_id", "id", UNKNOWN_OWNER),
        Check(
            "was here already: their choices stay",
            # What people chose here themselves stays, from the first contact of one of their computers, or their
            # sign-in, on.
            f"""
DELETE FROM moving_rows m
 WHERE EXISTS (SELECT FROM portal_host h JOIN accounting_hostledger l ON l.host_id = h.id
                WHERE h.owner_id = m.id AND l.contacts > 0)
    OR EXISTS (SELECT FROM portal_user u WHERE u.id = m.id AND {people.SIGNED_IN_HERE})
RETURNING id""",
            leaves=True,
        ),
    ),
)
