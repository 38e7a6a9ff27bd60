"""The rows that `accounting/rpc/read.sql` returns: JSON objects with these fields."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import msgspec

from accounting.engine.amounts import Totals
from accounting.engine.choice.troubles import StoredTroubles
from accounting.engine.machine import Allowance
from portal.clients.database.json_rows import JsonRow


class ProjectRow(JsonRow):
    """A project on the host: the ledger's amounts, the owner's wishes, and the client's last report."""

    project_id: int
    reported: Totals | None
    earlier: tuple[Totals, ...]
    handed: Totals | None
    credited: Totals
    pending: Totals
    dropped: Totals
    listed: bool
    restart: Totals | None
    broken: frozenset[str]
    suspended: bool
    told_suspended: bool
    no_new_work: bool
    excluded: bool
    no_rsc: tuple[str, ...]
    update_asked: bool
    drop_waiting: bool
    troubles: StoredTroubles | None
    listed_at: int | None
    hostid: int | None
    by_owner: bool | None
    faulty: bool | None
    unsummed: tuple[int | None, int] | None


class ChoiceRow(JsonRow):
    """The owner's choice at a project, and their totals there; ``summed_at`` in microseconds since 1970."""

    project_id: int
    is_chosen: bool
    resource_share: float | None
    account_key: str | None
    total_ec: int
    avg_ec: float
    summed_at: int | None


class SettingsRow(JsonRow):
    """The owner's settings, as `accounting.models.AccountSettings` has them."""

    preferences: dict[str, Any]
    preferences_at: dt.datetime | None
    keywords_yes: tuple[int, ...]
    keywords_no: tuple[int, ...]
    team_name: str
    no_project_notices: bool
    sends_tasks: bool


class AccountRow(JsonRow):
    """One request's account; ``n``: its position in the batch, from 1. ``hardware_digest`` in hexadecimal."""

    n: int
    user_id: int
    user_name: str
    email: str
    host_id: int
    token: str
    ncpus: int
    p_fpops: float | None
    p_model: str
    coprocs: list[dict[str, Any]]
    hardware_digest: str
    venue: str
    last_at_us: int | None
    client_now: float | None
    level: Allowance
    contacts: int
    platform: str
    excluded_types: tuple[str, ...]
    answer_digest: str
    answers_logged: int
    same_answers: int
    cpid: str
    key_id: int
    key_used_at: dt.datetime | None
    may_have_keys: bool
    projects: list[ProjectRow] | None
    choices: list[ChoiceRow] | None
    settings: SettingsRow | None


ACCOUNT: Final = msgspec.json.Decoder(AccountRow)
