"""The addresses under which a project is known: its master URL, and learnt ones."""

from __future__ import annotations

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounting.engine.addresses import address_key
from accounting.models import Project, ProjectAddress
from accounting.rpc import catalogue
from accounting.wire.requests import canonical_url

log = structlog.get_logger("projects")

Source = ProjectAddress.Source


def project_at(url: str) -> Project | None:
    """Return the project with this master URL or another address of its own, in any spelling; addresses that only
    computers reported do not count.
    """
    key = address_key(url)
    named = ProjectAddress.objects.filter(key=key, is_active=True).exclude(source=Source.CLIENTS).values("project")
    return Project.objects.filter(Q(address_key=key) | Q(pk__in=named)).first() if key else None


def learn(project: Project, url: str, source: Source) -> ProjectAddress | None:
    """Store another address of a project; None if it is known, or another project's.

    An address that only computers reported goes to the project that names it itself. Raises ValueError for an address
    that no client would attach to.
    """
    url = canonical_url(url)
    key = address_key(url)
    if Project.objects.filter(address_key=key).exists():
        return None
    address = ProjectAddress.objects.filter(key=key).first()
    if address is None:
        address = _add(project, url, source)
    elif address.source == Source.CLIENTS and address.is_active and source != Source.CLIENTS:
        address.project, address.source = project, source
        address.save()
    else:
        address = None
    if address is not None:
        log.info("project_address_learnt", project=project.pk, url=url, source=str(source))
        transaction.on_commit(catalogue.forget)
    return address


def _add(project: Project, url: str, source: Source) -> ProjectAddress | None:
    try:
        with transaction.atomic():
            return ProjectAddress.objects.create(project=project, url=url, source=source)
    except IntegrityError:
        return None  # another process was faster


def move(project: Project, url: str) -> None:
    """Give a project another master URL, canonical and signed by the caller; the former one stays known."""
    project.master_url = url
    with transaction.atomic():
        project.save()
        transaction.on_commit(catalogue.forget)
