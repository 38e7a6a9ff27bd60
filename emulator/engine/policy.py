"""The interface of a scheduling policy: which jobs run, and when which project is asked for how much work.

The client (emulator.engine.client) owns time, jobs, processors and RPCs; a policy owns its accounts (REC, debts)
and decides. Three generations of BOINC's policy fit: the debts of 2005 with fixed periods, the long-term debts of
the 6.6 client, and REC.

Order of calls. `begin` once. Then, at each instant at which something happens: `accrue` before anything changes
(the same jobs have been running since the last call); the changes, announced by `projects_changed` and `job_ended`;
`choose` if the set of running jobs may have to change; then `fetch`. Processor kinds are indexes
into `client.kinds`; 0 is the CPU. Times are seconds from the start of the run.

A policy reads the client, its projects and jobs, and changes none of them, except a job's `slice_end_secs`. It keeps
its own data in itself, by `project.index` and `job.id`. It must not read a job's real size.

`POLICY_API_VERSION` names this interface: what a policy may read (the public attributes of Client, ProjectState, Job,
AppState and Offer in emulator.engine.client and emulator.engine.state), what it is called with, and what it returns. It
is raised when one of these changes so that an existing policy would no longer work.
docs/tutorials/own-policy.md shows how to write a policy outside this project.
"""

from __future__ import annotations

from typing import Final, Protocol

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.state import Job, ProjectState

POLICY_API_VERSION: Final = 1


class PolicyError(Exception):
    """An external policy broke a rule of this interface, failed, or cannot be used; the message is a sentence."""


class Policy(Protocol):
    """A scheduling policy. One object serves one run."""

    @property
    def name(self) -> str: ...
    @property
    def uses_backoffs(self) -> bool:
        """Whether the client has back-offs per (project, kind): 6.6 and later. Otherwise, a project that was asked and
        sent nothing gets an RPC delay for everything.
        """
        ...

    def begin(self, client: Client) -> None:
        """The run begins, at time 0; the client has its first projects and jobs."""

    def accrue(self, now: float) -> None:
        """Books the time until now for the jobs in `client.running`."""

    def projects_changed(self, now: float) -> None:
        """Called when a project was attached or left, a share, a suspension or the buffer changed, an application
        came.
        """

    def job_ended(self, job: Job, now: float) -> None:
        """Called when a job is finished (or dropped) and in no list any more."""

    def choose(self, now: float) -> Choice:
        """Chooses which jobs run. Called when a job ended or arrived, a kind became active, or at `recheck_secs`."""
        ...

    def fetch(self, now: float) -> Fetch:
        """Decides whom to ask. Called after each change and at `recheck_secs`, when an RPC is possible."""
        ...

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        """Returns the request to a project that is being contacted anyway, to report jobs. None: nothing."""
        ...

    def standing(self, project: ProjectState, now: float) -> float:
        """The number that the policy ranks the project by, for charts: REC in credit per day, or debt in seconds."""
        ...
