"""Change a project's address to another server while account keys are stored: a step for two persons."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounting.models import Project
from accounting.rpc import catalogue
from portal.audit.proposals import Proposal
from portal.audit.two_persons import Payload, StepKind, StepRefused
from portal.models import SignedEntry, User
from portal.wire.sealing import origin

KIND: Final = "project_address"


def needs_two(project: Project, master_url: str) -> bool:
    """Whether this address of a stored project is on another server, so that keys would be lost."""
    before = Project.objects.get(pk=project.pk)
    has_keys = bool(before.shared_account_key) or before.user_projects.exclude(account_key=None).exists()
    return has_keys and origin(before.master_url) != origin(master_url)


def payload(project: Project, master_url: str, url_signature: str) -> Payload:
    """Describe the change; ``project`` as it is stored."""
    return {
        "project": project.pk,
        "before": project.master_url,
        "master_url": master_url,
        "url_signature": url_signature,
    }


def _carry_out(payload: Payload, asked_by: User) -> None:
    """Carry the change out. Locks the signed log, then the project."""
    SignedEntry.lock()
    project = Project.objects.select_for_update(no_key=True).filter(pk=payload["project"]).first()
    if project is None or project.master_url != payload["before"]:
        raise StepRefused(gettext("The address was changed meanwhile. Ask again."))
    project.master_url, project.url_signature = payload["master_url"], payload["url_signature"]
    try:
        project.full_clean()
    except ValidationError as error:
        raise StepRefused(" ".join(error.messages)) from error
    project.save()
    transaction.on_commit(catalogue.forget)


def _lines(payload: Payload) -> list[tuple[str, str]]:
    return [
        (gettext("Address now"), payload["before"]),
        (gettext("New address"), payload["master_url"]),
        (gettext("Account keys"), gettext("All keys that are stored for this project are removed.")),
    ]


def is_move(row: Model, proposal: Proposal) -> bool:
    """Whether a change that was proposed in another way is such a step, and is refused there."""
    changes = proposal.changes
    return isinstance(row, Project) and "master_url" in changes and needs_two(row, str(changes["master_url"][1]))


STEPS: Final = {KIND: StepKind(_("Address of a project"), "accounting.change_project", _carry_out, _lines)}
