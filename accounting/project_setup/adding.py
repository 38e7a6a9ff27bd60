"""Add a project after it was asked about itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounting.models import Project, ProjectAddress, ProjectProfile
from accounting.project_setup.asking import ConfigAnswer
from accounting.project_setup.contents import set_keywords, set_versions
from accounting.projects import signing_key
from accounting.projects.addresses import learn
from accounting.rpc import catalogue
from portal.wire import signing


class AlreadyThere(Exception):
    """A project with this URL or name exists. ``str`` is a sentence for operators."""


@dataclass(frozen=True, slots=True)
class NewProject:
    """The operator's choices for a new project. ``master_url`` in its canonical form; ``asked_url``: where the project
    answered.
    """

    name: str
    master_url: str
    asked_url: str
    web_url: str
    summary: str
    default_share: float
    account_mode: str
    takes_platforms: bool
    versions: Sequence[tuple[str, str]]
    keywords: Mapping[int, float]


@transaction.atomic
def add_project(chosen: NewProject, answer: ConfigAnswer, now: dt.datetime) -> Project:
    """Add it, signed if the private key is here. No computer is attached yet: that is the last step of the set-up.

    Raises AlreadyThere if somebody else was faster.
    """
    try:
        with transaction.atomic():
            project = _create(chosen)
    except IntegrityError as error:
        raise AlreadyThere(_("A project with this URL or name has been added in the meantime.")) from error
    set_versions(project, chosen.versions)
    set_keywords(project, chosen.keywords)
    config = answer.config.to_json() if answer.config is not None else {}
    learn(project, chosen.asked_url, ProjectAddress.Source.OPERATOR)
    ProjectProfile.objects.create(
        project=project,
        said=config,
        seen=config,
        said_at=now,
        asked_at=now,
        etag=answer.version.etag,
        last_modified=answer.version.last_modified,
    )
    transaction.on_commit(catalogue.forget)
    return project


def _create(chosen: NewProject) -> Project:
    return Project.objects.create(
        name=chosen.name,
        master_url=chosen.master_url,
        web_url=chosen.web_url,
        summary=chosen.summary,
        default_share=chosen.default_share,
        account_mode=chosen.account_mode,
        takes_platforms=chosen.takes_platforms,
        is_active=False,
        colour=Project.next_colour(),
        url_signature=_signature(chosen.master_url),
    )


def _signature(url: str) -> str:
    """Sign with the server's key; empty where that is elsewhere or cannot be read, as the signing step reports."""
    with suppress(signing.SigningError, OSError):
        return signing_key.sign_url(url) or ""
    return ""
