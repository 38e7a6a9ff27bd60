"""A computer's latest answers in short, for its page. Pure.

An answer like the one before is only counted, so the usual contact costs a digest and no row. The summary is JSON: what
was said about each project, when to call again, messages, and the parts of the client's report that explain the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from accounting.engine.choice.troubles import StoredTroubles
from accounting.wire.replies import AccountEntry, AccountManagerReply
from accounting.wire.requests import AccountManagerRequest

MAX_ANSWERS: Final = 50
"""Answers stored per computer."""
MAX_ACCOUNTS: Final = 40
MAX_MESSAGES: Final = 5


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer: its digest, how many different answers there were so far, how often it was given in a row."""

    digest: str
    logged: int
    same: int

    @property
    def slot(self) -> int:
        """The row of the answer; a computer's oldest answer is overwritten."""
        return self.logged % MAX_ANSWERS

    def then(self, answer: str) -> tuple[LastAnswer, bool]:
        """Return the state after one more answer, and whether that differs from the last one."""
        digest = blake2b(answer.encode(), digest_size=8).hexdigest()
        if digest == self.digest:
            return LastAnswer(digest, self.logged, self.same + 1), False
        return LastAnswer(digest, self.logged + 1, 1), True


NOTHING_ANSWERED: Final = LastAnswer("", 0, 0)


def summarise(
    request: AccountManagerRequest,
    reply: AccountManagerReply,
    projects: Sequence[int | None],
    troubles: Mapping[int, StoredTroubles],
) -> str:
    """Summarise the contact. ``projects``: the ids of those in the reply, None for one that this site does not know;
    ``troubles``: the client's with those it lists.
    """
    accounts = [_account(entry, project, troubles) for entry, project in zip(reply.accounts, projects, strict=True)]
    summary: dict[str, Any] = {
        "delay_secs": reply.repeat_secs,
        "client": request.client_version,
        "cpid": request.host_cpid,
        "accounts": accounts[:MAX_ACCOUNTS],
    }
    if len(accounts) > MAX_ACCOUNTS:
        summary["accounts_left_out"] = len(accounts) - MAX_ACCOUNTS
    if reply.messages:
        summary["messages"] = [message.to_json() for message in reply.messages][:MAX_MESSAGES]
    return orjson.dumps(summary).decode()


def _account(entry: AccountEntry, project: int | None, troubles: Mapping[int, StoredTroubles]) -> dict[str, Any]:
    """Return the answer about one project; ``project`` is its id, or its URL if this site does not know it."""
    content: dict[str, Any] = {"project": entry.url if project is None else project}
    if entry.detach_when_done:
        content["order"] = "detach_when_done"
    else:
        content["order"] = "attach" if project is None or project not in troubles else "keep"
        content["share"] = entry.resource_share
    if entry.suspend is not None:
        content["suspend"] = entry.suspend
    if entry.dont_request_more_work:
        content["no_new_work"] = True
    if entry.abort_not_started:
        content["drop_waiting"] = True
    if entry.update:
        content["update"] = True
    if entry.no_rsc:
        content["no_rsc"] = list(entry.no_rsc)
    if project is not None and (stored := troubles.get(project)):
        content["met"] = [trouble[:2] for trouble in stored]
    return content
