"""Instructions for a client: its projects and their shares, its owner's wishes, preferences, the next contact.

Source: BOINC protocol, AM RPC reply. A project that is merely left out stays attached. So a project that is no longer
wanted is named, with an order to detach once its jobs are done: never at once, which would drop them. A project that
its owner attached stays, unless they exclude it from the computer, and gets no orders at an address that only computers
have reported. A project that the client has is named by the client's own address, and one that is unknown here not at
all.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from itertools import islice
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings

from accounting.engine import preferences
from accounting.engine.amounts import MICRO, NO_WORK
from accounting.engine.audience import Reader
from accounting.engine.choice.facts import CPU, Computer, Trouble, Volunteer
from accounting.engine.choice.rules import choose_shares
from accounting.engine.choice.troubles import StoredTroubles, current_troubles
from accounting.engine.host_wishes import NO_WISHES
from accounting.engine.returns import smallest_remaining
from accounting.engine.states import LedgerChanges, NoteKind, ProjectState
from accounting.rpc import catalogue
from accounting.rpc.attachments import Attachments, account_key, is_key_of_owner
from accounting.rpc.feed_addresses import feed_path
from accounting.rpc.store import Account, to_us
from accounting.wire.replies import AccountEntry, AccountManagerReply, Preferences, PreferenceSet, RssFeed
from accounting.wire.requests import AccountManagerRequest, ReportedProject
from portal.clients.database.settings_cache import cached_setting
from portal.languages.messages import VERBATIM, Message

# The first client version that starts its counters from the totals in the reply. Older ones do not know these elements.
_WEEK_US: Final = 7 * 86_400 * MICRO
HONOURS_HANDED_SINCE: Final = (8, 3)
MAX_URGENT: Final = 5
NOTICES_POLL_SECS: Final = 86_400
SAME_SHARE: Final = 1e-3


class ReplyFacts(NamedTuple):
    """The settlement, the host's rows after it, the projects that the request listed, the shares chosen, all projects,
    and how the client came to have its projects.
    """

    settlement: LedgerChanges
    rows: dict[int, ProjectState]
    listed: dict[int, ReportedProject]
    shares: dict[int, float]
    projects: catalogue.Catalogue
    first_contact: bool
    attachments: Attachments


def choose_for(
    account: Account,
    listed: Mapping[int, ReportedProject],
    troubles: Mapping[int, StoredTroubles],
    projects: catalogue.Catalogue,
    now: dt.datetime,
) -> dict[int, float]:
    """Choose the projects of the account's computer; ``troubles``: those with projects that the request lists."""
    if not account.may_have_keys:
        return {}
    without_account = projects.without_account
    if lacking := [p.id for p in projects.with_own_keys if account_key(account, p) is None]:
        without_account = without_account.union(lacking)
    excluded, paused, excluded_types = [], [], {}
    for id_, wishes in account.wishes.items():
        if wishes.excluded:
            excluded.append(id_)
        if wishes.suspended or wishes.no_new_work:
            paused.append(id_)
        if wishes.no_rsc:
            excluded_types[id_] = frozenset(wishes.no_rsc)
    types = [type_ for type_ in (CPU, *account.device_types) if type_ not in account.excluded_types]
    return choose_shares(
        projects.facts,
        Volunteer(account.choices, frozenset(account.keywords_yes), frozenset(account.keywords_no), without_account),
        Computer(
            account.host_id,
            tuple(types),
            account.platform,
            frozenset(listed),
            frozenset(excluded),
            excluded_types,
            frozenset(paused),
            _troubles(account, troubles, now),
        ),
        now,
    )


def _troubles(
    account: Account, troubles: Mapping[int, StoredTroubles], now: dt.datetime
) -> dict[int, tuple[Trouble, ...]]:
    warnings = {
        id_: current_troubles(stored, at_secs, is_here=False, now=now)
        for id_, (stored, at_secs) in account.troubles.items()
        if id_ not in troubles
    }
    for id_, stored in troubles.items():
        if stored:
            warnings[id_] = current_troubles(stored, None, is_here=True, now=now)
    return warnings


class _Site(NamedTuple):
    """The constant parts of all replies while the site runs. ``signing_key``: clients check URLs' signatures by it."""

    name: str
    signing_key: str
    feeds: tuple[RssFeed, ...]
    repeat_secs: int
    repeat_secs_after_attach: int
    asks_tasks: str


@cached_setting
def _site() -> _Site:
    return _Site(
        settings.SITE_NAME,
        Path(settings.AM_SIGNING_KEY_PUBLIC).read_text(encoding="ascii"),
        (RssFeed(f"{settings.SITE_URL}notices.rss", NOTICES_POLL_SECS),),
        settings.AM_REPEAT_SECS,
        settings.AM_REPEAT_SECS_AFTER_ATTACH,
        "" if settings.AM_TASKS == "off" else settings.AM_TASKS,
    )


def reply_to(
    request: AccountManagerRequest, account: Account, facts: ReplyFacts, *, now: dt.datetime
) -> AccountManagerReply:
    """Build the reply without a key for later requests, which the caller adds."""
    site = _site()
    reader = Reader(frozenset(facts.listed), account.platform, request.version_tuple)
    return AccountManagerReply(
        name=site.name,
        signing_key=site.signing_key,
        repeat_secs=_repeat_secs(account, facts, now),
        user_name=account.user_name,
        team_name=account.team_name,
        messages=_messages(request, account, facts, reader, now),
        host_token=account.token,
        keywords_yes=account.keywords_yes,
        keywords_no=account.keywords_no,
        global_preferences=_preferences(account),
        host_venue=account.venue,
        no_project_notices=account.no_project_notices,
        rss_feeds=_feeds(account, facts, reader),
        send_tasks=site.asks_tasks if account.sends_tasks else "",
        accounts=_accounts(request, account, facts),
    )


def takes_tasks(account: Account) -> bool:
    """Whether the tasks that the account's client lists are stored."""
    return account.sends_tasks and bool(_site().asks_tasks)


def _feeds(account: Account, facts: ReplyFacts, reader: Reader) -> tuple[RssFeed, ...]:
    """Return the feed for everybody and, while there may be news for this computer alone, its own."""
    feeds = _site().feeds
    if any(audience.may_fit(reader) for audience in facts.projects.audiences):
        return (*feeds, RssFeed(f"{settings.SITE_URL}{feed_path(account.host_id)}", NOTICES_POLL_SECS))
    return feeds


def _accounts(request: AccountManagerRequest, account: Account, facts: ReplyFacts) -> list[AccountEntry]:
    if not account.may_have_keys:
        # Projects that are left out stay as they are: nothing is attached, and nothing that is attached is detached.
        return []
    entries = []
    for id_, share in facts.shares.items():
        if account.wishes.get(id_, NO_WISHES).excluded or id_ in facts.attachments.in_doubt:
            continue
        if id_ in facts.listed or _is_offered(facts.rows.get(id_)):
            entries.append(_entry(request, account, id_, facts, share))
    for id_, reported in facts.listed.items():
        wishes = account.wishes.get(id_, NO_WISHES)
        if id_ in facts.attachments.in_doubt or (id_ in facts.shares and not wishes.excluded):
            continue
        is_left = reported.attached_via_acct_mgr and id_ not in facts.attachments.by_owner
        # A client that has just moved in finds everything as it was.
        if wishes.excluded or (is_left and request.host_number is None):
            entries.append(_leave(account, id_, facts, drop_waiting=wishes.drop_waiting))
        elif reported.attached_via_acct_mgr or _may_take_over(account, facts.projects.by_id[id_]):
            # The owner's own. It may have been sent a share, or an order to detach, before: this takes it back. And a
            # client reports the account key of a project once a reply has named it, so that its owner can take it over.
            entries.append(_entry(request, account, id_, facts, None))
    return entries


def _may_take_over(account: Account, project: catalogue.CatalogueProject) -> bool:
    """Whether the volunteer has not yet entered their own account, where each has one."""
    return project.per_user and not project.is_own and account_key(account, project) is None


def _leave(account: Account, id_: int, facts: ReplyFacts, *, drop_waiting: bool) -> AccountEntry:
    total, average = _user_credit(account, id_, facts)
    return AccountEntry(
        url=facts.listed[id_].url,
        detach_when_done=True,
        abort_not_started=drop_waiting,
        user_total_ec=total,
        user_avg_ec=average,
    )


def _entry(
    request: AccountManagerRequest, account: Account, id_: int, facts: ReplyFacts, share: float | None
) -> AccountEntry:
    """Return the entry of a project that the client has, or should attach to; ``share`` None: the project's own."""
    project, reported = facts.projects.by_id[id_], facts.listed.get(id_)
    wishes = account.wishes.get(id_, NO_WISHES)
    key = _key_to_send(account, project, facts)
    total, average = _user_credit(account, id_, facts)
    entry = AccountEntry(
        url=reported.url if reported is not None else project.url,
        # Needed only to attach
        url_signature=project.url_signature if reported is None or reported.url == project.url else "",
        authenticator=key,
        resource_share=share,
        update=wishes.update_asked or _takes_new_key(reported, key),
        suspend=wishes.suspended if wishes.suspended or wishes.told_suspended else None,
        dont_request_more_work=wishes.no_new_work,
        # Without no_new_work the client would fetch jobs and drop them, again and again.
        abort_not_started=wishes.drop_waiting and wishes.no_new_work,
        no_rsc=tuple(dict.fromkeys((*wishes.no_rsc, *account.excluded_types))),
        user_total_ec=total,
        user_avg_ec=average,
    )
    if request.version_tuple >= HONOURS_HANDED_SINCE:
        # A client starts its counters from the totals that it gets at the attach; see the ledger's offer().
        row = facts.rows.get(id_)
        entry.totals = (row.handed or row.credited) if row is not None else NO_WORK
    return entry


def _user_credit(account: Account, id_: int, facts: ReplyFacts) -> tuple[float, float]:
    """Return the volunteer's credit at a project and a day's, which clients show; without it they would show 0.

    The sum of all computers is some minutes old. This one's credit since then is added.
    """
    total, average = account.user_totals.get(id_, (0, 0.0))
    return (total + account.unsummed(id_, facts.settlement)) / MICRO, average


def _key_to_send(account: Account, project: catalogue.CatalogueProject, facts: ReplyFacts) -> str:
    """Return the account key at the project; empty if the client has its owner's own, or an address that a stranger may
    have made up. Clients keep theirs then.
    """
    reported = facts.listed.get(project.id)
    if reported is not None and (
        is_key_of_owner(project, reported, account, facts.attachments) or not project.may_get_key(reported.url)
    ):
        return ""
    return account_key(account, project) or ""


def _is_offered(row: ProjectState | None) -> bool:
    """Whether the ledger has the totals that the client should start from.

    It does not if the request was an old message, which changes nothing. Then the project is offered with the next
    reply: work for a project that was never offered does not count (accounting rules, rule 3).
    """
    return row is not None and row.handed is not None


def _takes_new_key(reported: ReportedProject | None, key: str) -> bool:
    """Whether the client has another account key for a project that it has, and accepts this one.

    It should use it at once: the project may have refused its old one, and it would wait for up to an hour. Clients
    exchange weak keys only, which have an underscore.
    """
    if reported is None or not key or reported.account_key == key:
        return False
    return "_" in key and "_" in (reported.account_key or "_")


def _repeat_secs(account: Account, facts: ReplyFacts, now: dt.datetime) -> int:
    """Return when to call again: soon after an attach, as clients apply shares from the second reply on only.

    A client that does not follow them (for example because it refuses a signature) is called back at doubling
    intervals.
    """
    site = _site()
    if facts.first_contact or _is_offered_more(account, facts):
        return min(site.repeat_secs_after_attach, site.repeat_secs)
    last = account.state.last_at_us
    since_secs = (to_us(now) - last) // MICRO if last is not None else 0
    secs = _secs_of_reset(account, facts, since_secs)
    if not _is_settled(account, facts):
        secs = min(secs, 2 * since_secs)
    return int(min(max(site.repeat_secs_after_attach, secs), site.repeat_secs))


def _is_offered_more(account: Account, facts: ReplyFacts) -> bool:
    """Whether this reply is the first that offers a project.

    If the client had the project before, it may start from zero now, and soon return to its old totals (accounting
    rules, 3).
    """
    for id_, row in facts.rows.items():
        if id_ not in facts.listed and row.handed is not None:
            before = account.projects.get(id_)
            if before is None or before.handed is None:
                return True
    return False


def _secs_of_reset(account: Account, facts: ReplyFacts, since_secs: int) -> float:
    """Return how soon a client that was reset should report, so that its new work can be told from its old totals.

    Half of its shortfall must not come in one step (accounting rules, rule 4). It is asked in the time in which the
    computer can do a third, as clients report a little late. If nothing was done since its last report, the time is
    twice that since then, so that an idle client is not asked for ever.
    """
    machine = account.machine
    gpus = sum(count for count, _ in machine.gpus) if machine is not None else 0
    instances = machine.ncpus + gpus + (gpus > 0) if machine is not None else 0
    soonest = inf
    for id_ in facts.listed:
        row, before = facts.rows.get(id_), account.projects.get(id_)
        if row is not None and (way_us := smallest_remaining(row)):
            secs = way_us / (3 * MICRO * max(1, instances))
            is_idle = before is not None and before.reported == row.reported
            soonest = min(soonest, max(secs, 2 * since_secs) if is_idle else secs)
    return soonest


def _is_settled(account: Account, facts: ReplyFacts) -> bool:
    """Whether the client has the chosen projects at the chosen shares; not while it waits for a confirmed address."""
    if not account.may_have_keys:
        return False
    for id_, share in facts.shares.items():
        if account.wishes.get(id_, NO_WISHES).excluded:
            continue
        reported = facts.listed.get(id_)
        if reported is None or abs((reported.resource_share or 0.0) - share) > SAME_SHARE * max(1.0, share):
            return False
    return True


def _messages(
    request: AccountManagerRequest, account: Account, facts: ReplyFacts, reader: Reader, now: dt.datetime
) -> list[Message]:
    """Build messages for the client's log: urgent announcements, and problems that its owner should act on."""
    projects = facts.projects
    urgent = (
        Message(VERBATIM, text=message.title)
        for message in projects.urgent
        if now < message.until and message.audience.may_fit(reader)
    )
    announcements = list(islice(urgent, MAX_URGENT))
    if not account.may_have_keys:
        announcements.append(Message("told_to_confirm_email", url=f"{settings.SITE_URL}account/email/"))
    elif not facts.shares and not facts.attachments.elsewhere:
        announcements.append(Message("told_no_project", url=f"{settings.SITE_URL}projects/"))
    week_begins = is_new_week(account.state.last_at_us, to_us(now))
    if not request.reports_credit and week_begins:
        announcements.append(Message("told_no_reports"))
    return announcements + [
        Message(
            _NOTE_MESSAGES[note.kind],
            project=projects.by_id[note.project_id].name,
            detail=Message.from_packed(note.detail),
        )
        for note in facts.settlement.notes
        if note.kind in _NOTE_MESSAGES
        and note.project_id in projects.by_id
        and (week_begins or note.project_id not in account.faulty)
    ]


def is_new_week(last_at_us: int | None, now_us: int) -> bool:
    """Whether a week has begun since the last contact, so that a message is not repeated at each of them."""
    return last_at_us is None or last_at_us // _WEEK_US < now_us // _WEEK_US


_NOTE_MESSAGES: Final = {NoteKind.INVALID: "told_totals_unreadable", NoteKind.SUM_BROKEN: "told_sum_broken"}


def _preferences(account: Account) -> Preferences | None:
    """Return the volunteer's preferences, if saved here for the computer's place; else none: the client keeps its own.

    Clients need a set for everywhere. Where none is saved, a computer gets its place's set in that role; it keeps it
    even if it moves to a place without a set.
    """
    venues = preferences.own_venues(account.preferences)
    has_everywhere = preferences.has_everywhere(account.preferences)
    general = account.preferences if has_everywhere else venues.get(account.venue)
    if general is None or account.preferences_at is None:
        return None
    return Preferences(
        mod_time=int(account.preferences_at.timestamp()),
        general=_preference_set(general),
        venues={name: _preference_set(own) for name, own in venues.items()},
    )


def _preference_set(chosen: Mapping[str, object]) -> PreferenceSet:
    return PreferenceSet(preferences.complete(chosen), preferences.days_of(chosen))
