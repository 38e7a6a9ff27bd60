"""What both drivers do around a use case: turn faults into replies that clients understand, log, and count."""

from __future__ import annotations

import random
import re
from functools import cache
from ipaddress import ip_address
from time import perf_counter
from typing import Any, Final

import structlog
from django.core.signals import got_request_exception

from portal.clients.effects import Busy, Steps
from portal.clients.messages import BUSY, NO_DATABASE, TRY_LATER, ClientReply, ClientRequest, refusal
from portal.clients.paths import ClientPath
from portal.databases.errors import is_database_lost, is_worth_repeating
from portal.ops import metrics
from portal.ops.logs import USER_AGENT_CHARS, log_request
from portal.people.accounts import ClientAuthError
from portal.wire.boinc_errors import ERR_GENERIC
from portal.wire.scanner import ProtocolError

log = structlog.get_logger(__name__)
_LONGEST_REASON: Final = 300
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")


@cache
def _handler(route: ClientPath) -> Any:
    return route.load()


async def steps(route: ClientPath, request: ClientRequest) -> ClientReply:
    """Answer a request, even after a failure: clients wait for ever after an HTTP error (BOINC protocol).

    If the database was lost midway, everything is done once more: clients repeat every request, so each is safe to
    repeat, even if its writes are stored already. Only a body that comes as a stream is gone by then.
    """
    for may_repeat in (not route.is_stream, False):
        try:
            answer: ClientReply | Steps[ClientReply] = _handler(route)(request)
            return answer if isinstance(answer, ClientReply) else await answer
        except ClientAuthError as error:
            return refusal(route.root, error.error_num, error.message)
        except ProtocolError as error:
            # The client is told which limit it was, and so is the operator.
            log.info("message_refused", path=route.path, field=error.field, reason=str(error)[:_LONGEST_REASON])
            return refusal(route.root, error.error_num, str(error))
        except Busy:
            return busy(route)
        except Exception as error:
            # Any kind of exception: without a reply in its own protocol a client may wait for ever.
            if not is_database_lost(error):
                return failed(route)
            log.warning("protocol_database_lost", path=route.path, reason=str(error)[:_LONGEST_REASON])
            if not (may_repeat and is_worth_repeating(error)):
                break
    return refusal(route.root, ERR_GENERIC, NO_DATABASE)


def busy(route: ClientPath) -> ClientReply:
    """The reply while the site is too busy."""
    log.warning("protocol_busy", path=route.path)
    return refusal(route.root, ERR_GENERIC, BUSY)


async def best_effort(steps: Steps[Any]) -> None:
    """Take these steps after a use case has stored its outcome: if they fail, the answer is still sent."""
    try:
        await steps
    except Exception:
        # Any kind of exception: the outcome is stored already, and the client must be told.
        log.exception("protocol_side_step_failed")


def failed(route: ClientPath) -> ClientReply:
    """The reply after a fault that is being handled."""
    log.exception("protocol_failed", path=route.path)
    # For programs that watch for faults of Django's views.
    got_request_exception.send(sender=ClientPath, request=None)
    return refusal(route.root, ERR_GENERIC, TRY_LATER)


def request_id(given: str | None) -> str:
    """The trusted proxy's id if it has a sane form, else a random one, which need not be hard to guess."""
    return given if given and _REQUEST_ID.match(given) else f"{random.getrandbits(64):016x}"


def forwarded_address(header: str) -> str | None:
    """The client's address in X-Forwarded-For. The trusted proxy itself added the last one; all others are claims."""
    try:
        return str(ip_address(header.rsplit(",", 1)[-1].strip()))
    except ValueError:
        return None


def record(
    route: ClientPath, reply: ClientReply, *, method: str, id_: str, began: float, bytes_in: int, user_agent: str
) -> None:
    """Count an answered request and write its line; ``began`` by time.perf_counter."""
    elapsed_secs = perf_counter() - began
    metrics.count_rpc(route.path, reply.error_num, elapsed_secs)
    log_request(
        {
            "method": method,
            "path": route.path,
            "status": reply.status,
            "error_num": reply.error_num,
            "ms": round(elapsed_secs * 1000, 1),
            "request_id": id_,
            "bytes_in": bytes_in,
            "bytes_out": len(reply.body),
            "user_agent": user_agent[:USER_AGENT_CHARS],
        }
    )
