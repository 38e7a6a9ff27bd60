"""Messages to running jobs, and later deadlines: what a reply contains, and how its arrival is detected. Pure.

BOINC's client acknowledges neither. But it takes a later deadline for a job that it has, and reports the deadline of
each in its next request, if the reply asks for that (<send_full_workload>). So the first reply with a message moves the
job's deadline by a second: a client that reports the new one has had a reply with the message, and until then each
reply has it again, under the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

MAX_TEXT_NBYTES: Final = 64 * 1024
MAX_WAITING: Final = 20
"""The number of messages to a job that its computer has not had yet."""
MAX_PER_REPLY: Final = 20
STEP_SECS: Final = 1.0
MOST_TIMES: Final = 10
"""If its app sets no limit, a job gets at most this many times the longer of its own time and what a message adds."""
_TAGS: Final = ("<trickle_down>", "</trickle_down>", "<result_name>", "<time>")


@dataclass(frozen=True, slots=True)
class Message:
    """A message that its job's computer is not known to have had.

    ``told_deadline_at``: the deadline that came with it in the first reply that had it, None if there was none.
    ``has_begun``: the job has sent something itself.
    """

    id: int
    result_id: int
    text: str
    told_deadline_at: float | None
    has_begun: bool


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job on the computer. ``named_at``: its deadline as the client reports it, None if it does not."""

    id: int
    name: str
    deadline_at: float
    named_at: float | None
    has_begun: bool = False
    extended_at: float | None = None


@dataclass(slots=True)
class TrickleDownPlan:
    """What the reply says about jobs, and what is stored: ``deadlines`` by job, if they change; ``acknowledged`` and
    ``first_told`` messages; ``messages``: those of the reply, with their job's name; ``later``: deadlines that the
    client does not know yet.
    """

    deadlines: dict[int, float] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    first_told: list[Message] = field(default_factory=list)
    messages: list[tuple[str, Message]] = field(default_factory=list)
    later: list[tuple[str, float]] = field(default_factory=list)


def is_acceptable(text: str) -> bool:
    """Whether clients read it as a message: its lines go into the reply unescaped."""
    is_short = 0 < len(text.encode()) <= MAX_TEXT_NBYTES
    return is_short and "\0" not in text and not any(tag in text for tag in _TAGS)


def plan_messages(jobs: Iterable[RunningJob], messages: Sequence[Message]) -> TrickleDownPlan:
    """Decide what the reply contains: jobs with new messages first, as some never acknowledge any; each job's oldest
    messages first.

    A client drops messages to a job that has not begun, so they wait until the job has sent one itself.
    """
    plan = TrickleDownPlan()
    waiting: dict[int, list[Message]] = {}
    for message in messages:
        waiting.setdefault(message.result_id, []).append(message)
    new_to = {message.result_id for message in messages if message.told_deadline_at is None}
    for job in sorted(jobs, key=lambda job: job.id not in new_to):
        deadline_at = job.extended_at or job.deadline_at
        ready: list[Message] = []
        for message in waiting.get(job.id, ()):
            if _has_had(job, message):
                plan.acknowledged.append(message.id)
            elif (message.has_begun or job.has_begun) and len(plan.messages) + len(ready) < MAX_PER_REPLY:
                ready.append(message)
        new = [message for message in ready if message.told_deadline_at is None]
        if new:
            deadline_at = max(deadline_at, job.deadline_at + STEP_SECS)
        plan.first_told += new
        plan.messages += [(job.name, message) for message in ready]
        if deadline_at != job.deadline_at:
            plan.deadlines[job.id] = deadline_at
        is_news = bool(ready) or deadline_at != job.deadline_at
        if is_news if job.named_at is None else _written(deadline_at) > job.named_at:
            plan.later.append((job.name, deadline_at))
    return plan


def _has_had(job: RunningJob, message: Message) -> bool:
    told_at = message.told_deadline_at
    return told_at is not None and job.named_at is not None and job.named_at >= _written(told_at)


def _written(deadline_at: float) -> float:
    """Return a deadline as replies and requests write it, in whole seconds."""
    return float(f"{deadline_at:.0f}")


def most_secs(app_secs: int | None, delay_bound_secs: int, extension_secs: int) -> int:
    """Return the most seconds from sending a job to its last deadline, because no computer may keep one for ever."""
    return MOST_TIMES * max(delay_bound_secs, extension_secs) if app_secs is None else app_secs


def extended(deadline_at: float, sent_at: float, now: float, extension_secs: float, most_secs: float) -> float | None:
    """Return the later deadline of a job that has just shown progress; None if it stays.

    At least ``extension_secs`` from now, but no later than ``most_secs`` after it was sent.
    """
    extended_at = min(now + extension_secs, sent_at + most_secs)
    return extended_at if extension_secs > 0 and extended_at > deadline_at >= now else None


def element(job_name: str, message: Message) -> str:
    """Return the <trickle_down> of a reply. Its program finds the text in the file ``trickle_down_<number>``."""
    text = message.text if message.text.endswith("\n") else f"{message.text}\n"
    return f"<trickle_down>\n<result_name>{job_name}</result_name>\n<time>{message.id}</time>\n{text}</trickle_down>\n"
