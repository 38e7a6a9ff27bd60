"""A site on which Alice has one of everything, and a browser for each kind of visitor."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from accounting.models import AccountSettings, DataCopy, DataCopyPart, HostLedger, HostProject, Note
from accounting.rpc import catalogue
from accounting.rpc.feed_addresses import feed_path
from credit.models import Batch
from emulator.files.presets import two_processors_75_25
from emulator.models import Experiment, Run, RunState
from emulator.runs import experiments
from extras.alerts.tests.receivers import add_ntfy
from extras.certificates import registry
from extras.certificates.facts import CertificateRequest, Scopes
from extras.signature_image import links
from portal.models import ApiToken, ClientKey, Host, User
from portal.ops.mail_choices import Mail
from portal.ops.mails import unsubscribe_url
from portal.people.api_tokens import issue_token
from portal.people.join_tokens import make_join_token
from scheduler.models import SubmissionDraft
from tests.support.accounting_factories import credit, make_project
from tests.support.credit_factories import make_app, make_result, make_workunit
from tests.support.sessions import sign_in_lately


@dataclass
class World:
    """What the addresses are about, and a browser for each of the four."""

    ids: dict[str, str]
    clients: dict[str, Client]


def make_world(alice: User, bob: User, operator: User) -> World:
    """Alice has one of everything."""
    User.objects.filter(pk=alice.pk).update(name="Alice the owner")
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    catalogue.forget()
    project = make_project(name="Alpha", master_url="https://alpha.example.org/", account_key="1_key")
    machine = {"os_name": "Linux", "p_vendor": "Intel", "p_model": "Core i5", "ncpus": 4}
    host = Host.objects.create(owner=alice, domain_name="alices-own-computer", **machine)
    second = Host.objects.create(
        owner=alice,
        domain_name="alices-own-computer before",
        created_at=timezone.now() - dt.timedelta(days=2),
        last_contact_at=timezone.now() - dt.timedelta(days=1),
        **machine,
    )
    HostLedger.objects.create(host=host)
    HostProject.objects.create(host=host, project=project, listed=True)
    now = timezone.now()
    Note.objects.create(host=host, kind="reset", day=now.date(), first_at=now, last_at=now)
    AccountSettings.objects.create(user=alice, keywords_yes=[1])
    key = ClientKey.objects.create(user=alice, host=host, origin="attach", key_hash=b"k" * 32, hint="alices")
    copy = DataCopy.objects.create(user=alice, state=DataCopy.State.READY, size_bytes=5)
    export = DataCopy.objects.create(
        user=alice, content="csv", first=dt.date(2026, 1, 1), last=dt.date(2026, 1, 2), state="ready", size_bytes=5
    )
    for file in (copy, export):
        DataCopyPart.objects.create(copy=file, number=0, content=b"alice")
    join_token, _ = make_join_token(alice, group="alices-own-lab", max_hosts=3, lifetime=dt.timedelta(days=1))
    channel = add_ntfy(alice, "https://ntfy.example.org/alice@example.org")
    app = make_app()
    task = make_result(make_workunit(app), host)
    batch = Batch.objects.create(app=app, owner=alice, name="sweep")
    draft = SubmissionDraft.objects.create(app=app, owner=alice, name="Alice's draft", is_archive=False, path="none")
    submit = Permission.objects.get(codename="add_batch")
    for each in (alice, bob):
        each.user_permissions.add(submit)
    experiment, shared = (_experiment(alice, token) for token in (None, "f" * 32))
    clients = _clients(alice, bob, operator)
    today = dt.date(2026, 1, 2)
    shown = CertificateRequest(first=today, last=today, about="all", shows=["credit"])
    credit(host, project, str(today), (1_000_000, 0, 0, 0, 1, 0))
    certificate = registry.issue(alice, shown, Scopes({}, {}), timezone.now())
    signature = links.save(alice, {"shows_total": True}, timezone.now())
    ids = {
        "certificate": certificate.pk,
        "code": certificate.code,
        "signature": signature.token,
        "host": host.pk,
        "second": second.pk,
        "project": project.pk,
        "key": key.pk,
        "token": ApiToken.objects.get(user=alice).pk,
        "copy": copy.pk,
        "export": export.pk,
        "batch": batch.pk,
        "draft": draft.pk,
        "task": task.pk,
        "task_name": task.name,
        "workunit": task.workunit_id,
        "experiment": experiment.pk,
        "shared": shared.share_token,
        "feed": feed_path(host.pk),
        "channel": channel.pk,
        "join_token": join_token.pk,
        "leave": unsubscribe_url(alice.pk, Mail.SILENCE).removeprefix(settings.SITE_URL),
    }
    return World({name: str(value) for name, value in ids.items()}, clients)


def _experiment(owner: User, share_token: str | None) -> Experiment:
    """One whose only run failed."""
    found = experiments.create(owner, "t", "", two_processors_75_25(), 1)
    Run.objects.create(experiment=found, number=1, variant="v", policy="rec", state=RunState.FAILED, fault="f")
    Experiment.objects.filter(pk=found.pk).update(share_token=share_token, started_at=timezone.now())
    found.refresh_from_db()
    return found


def _clients(alice: User, bob: User, operator: User) -> dict[str, Client]:
    """A browser of each, signed in and with an API token, and a stranger's."""
    clients = {"stranger": Client(raise_request_exception=False)}
    for who, user in {"owner": alice, "other": bob, "staff": operator}.items():
        token = issue_token(user, name="t", scopes=list(ApiToken.Scope.values), lifetime=None)
        clients[who] = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
        sign_in_lately(clients[who], user)
    return clients
