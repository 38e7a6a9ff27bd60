"""Tell which of a client's projects come from us, and which it has under an address that we do not know for them.

An order to detach makes a client drop the project's tasks. So projects that the owner attached are never detached
unless they ask for it, and unknown ones are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from accounting.rpc import account_keys, catalogue
from accounting.rpc.store import Account
from accounting.wire.requests import AccountManagerRequest, ReportedProject
from portal.people.accounts import weak_key


class Attachments(NamedTuple):
    """``by_owner``: listed projects that we did not attach. ``elsewhere``: projects that the client seems to have under
    an unknown address, with this address. ``in_doubt``: those of ``by_owner`` at an address that only computers have
    reported. Strangers may have made it up, and it may be another project: it gets no orders.
    """

    by_owner: frozenset[int]
    elsewhere: dict[int, str]
    in_doubt: frozenset[int] = frozenset()

    def for_contact(self) -> dict[str, object]:
        """Return the part stored with the contact, from which `accounting.projects.reported_addresses` learns
        addresses.
        """
        return {"elsewhere": {str(id_): url for id_, url in self.elsewhere.items()}} if self.elsewhere else {}


def attachments_of(
    request: AccountManagerRequest,
    account: Account,
    listed: Mapping[int, ReportedProject],
    projects: catalogue.Catalogue,
) -> Attachments:
    by_owner = frozenset(
        id_ for id_, reported in listed.items() if _is_by_owner(projects.by_id[id_], reported, account)
    )
    elsewhere: dict[int, str] = {}
    if len(request.projects) > len(listed):
        for reported in request.projects:
            if projects.at(reported.url) is None and (id_ := _moved(reported, account, projects)) is not None:
                elsewhere.setdefault(id_, reported.url)
    in_doubt = frozenset(id_ for id_ in by_owner if not projects.by_id[id_].is_confirmed(listed[id_].url))
    return Attachments(by_owner, {id_: url for id_, url in elsewhere.items() if id_ not in listed}, in_doubt)


def _is_by_owner(project: catalogue.CatalogueProject, reported: ReportedProject, account: Account) -> bool:
    """Whether the owner, or another account manager, attached the project.

    Once a reply names a project, the client reports that we attached it; so the first answer is remembered as long as
    the client has the project. We attached it only if we offered it. A client that was told to stop using the site, and
    then to use it again, reports that its owner attached everything; present and former shared keys show which projects
    were ours.
    """
    if not reported.attached_via_acct_mgr:
        return True
    if not project.per_user and reported.account_key and reported.account_key in project.shared_account_keys:
        return False
    row = account.projects.get(project.id)
    if row is None or not row.listed:
        return row is None or row.handed is None
    return project.id in account.attached_by_owner


def is_key_of_owner(
    project: catalogue.CatalogueProject, reported: ReportedProject, account: Account, attachments: Attachments
) -> bool:
    """Whether the client has its owner's own account at the project, whose key must not be replaced.

    Another key of the account that the volunteer entered here is as good: the former one ends with its password. So is
    one at the site's own project, where everybody has one account.
    """
    if project.id not in attachments.by_owner:
        return False
    has_one = project.per_user or project.is_own
    return not (has_one and _is_same_account(reported.account_key, account_key(account, project)))


def _is_same_account(key: str, other: str | None) -> bool:
    """Whether these are weak keys of one account at a project: they begin with its number."""
    number, underscore, _ = key.partition("_")
    return bool(underscore) and other is not None and other.startswith(f"{number}_")


def _moved(reported: ReportedProject, account: Account, projects: catalogue.Catalogue) -> int | None:
    """Return the project that a client has under an unknown address, by its account key or number there; None if
    unknown.

    Also one whose address clients do not distinguish from this one: they would take orders for it.
    """
    if (alike := projects.clients_take_for(reported.url)) is not None:
        return alike.id
    for id_ in account.projects:
        if id_ not in projects.by_id:
            continue
        if (
            reported.hostid
            and account.hostids.get(id_) == reported.hostid
            and _goes_on(reported, id_, account, projects)
        ):
            return id_
        if reported.account_key and account_key(account, projects.by_id[id_]) == reported.account_key:
            return id_
    return None


def _goes_on(reported: ReportedProject, id_: int, account: Account, projects: catalogue.Catalogue) -> bool:
    """Whether more than the computer's number there identifies the project: its name, or totals that continue.

    A young project numbers its computers from 1, like any other.
    """
    if reported.project_name.casefold() == projects.by_id[id_].name.casefold():
        return True
    before, after = account.projects[id_].reported, reported.totals
    if before is None or after is None:
        return False
    return any(before) and all(old <= new for old, new in zip(before, after, strict=True))


def account_key(account: Account, project: catalogue.CatalogueProject) -> str | None:
    """Return the account key at a project; None if the volunteer has no account there."""
    if project.is_own:
        return weak_key(account.user_id, account.key_hash) if account.key_hash else None
    if not project.per_user:
        return project.shared_account_key
    token = account.account_keys.get(project.id)
    try:
        return account_keys.own(account.user_id, project.id, project.url, token) if token is not None else None
    except account_keys.UnreadableAccountKey:
        return None
