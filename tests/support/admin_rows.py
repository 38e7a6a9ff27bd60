"""A row of each model of the admin, which is about a volunteer where it is about anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.admin.models import CHANGE
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.utils import timezone

from accounting.models import (
    AccountSettings,
    Announcement,
    HostClient,
    Note,
    Project,
    ProjectDay,
    ProjectStanding,
    ProjectTrouble,
    Settlement,
    StatisticsImport,
    TaskSource,
    UserProject,
)
from credit.models import (
    Batch,
    ConfirmingPair,
    HostAppVersion,
    Platform,
    Preview,
    StatisticsExport,
)
from extras.badges.models import Badge
from extras.central_factors.models import CollectedExport
from extras.laboratory.models import CreditExperiment
from extras.laboratory.trials.experiment import Experiment, Variant
from extras.remote_jobs.models import JobTemplate
from extras.scripts.models import Script
from extras.win_back_mails.models import MailCampaign
from portal.models import (
    Account,
    ApiToken,
    Change,
    ClientKey,
    ConfirmationRequest,
    ConsentEvent,
    Host,
    HostLimitRequest,
    JoinToken,
    MaintenanceRun,
    OperatingFigure,
    RequestedWork,
    SignedEntry,
    SiteText,
    SupportAction,
    User,
)
from scheduler.models import (
    AppKeyword,
    KeyChange,
    PlanClass,
    ReleaseDraft,
    RetryEntry,
    Step,
    StoredFile,
    Submitter,
    Trickle,
    TrickleDown,
    WorkBlock,
)
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit

EXPERIMENT: Final = Experiment([Variant("published")]).as_json()
NO_CHANGES: Final[dict[str, Any]] = {"app": {}, "versions": {}, "reset": []}
DRAFT_FIELDS: Final = {
    "app": "alpine",
    "version_num": 101,
    "platform": "x86_64-pc-linux-gnu",
    "plan_class": "",
    "processor_type": "CPU",
    "avg_ncpus": 1,
    "gpu_usage": 0,
    "min_gpu_ram_bytes": 0,
}


def admin_rows(alice: User) -> dict[str, Model]:
    """By the model's label."""
    host = Host.objects.create(owner=alice, domain_name="alices-own-computer", os_name="Linux", ncpus=4)
    project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/")
    of_credit = _credit_rows(alice, host)
    return {
        **_portal_rows(alice, host, project),
        **_accounting_rows(alice, host, project),
        **of_credit,
        **_scheduler_rows(alice, host, of_credit),
    }


def _portal_rows(alice: User, host: Host, project: Project) -> dict[str, Model]:
    now = timezone.now()
    return {
        "portal.user": alice,
        "portal.account": Account.objects.get(pk=alice.pk),
        "portal.supportaction": SupportAction.objects.create(
            user=alice,
            content_type=ContentType.objects.get_for_model(Account, for_concrete_model=False),
            object_id=str(alice.pk),
            object_repr=alice.email,
            action_flag=CHANGE,
            change_message="Looked at the account: their mail",
        ),
        "portal.host": host,
        "portal.clientkey": ClientKey.objects.create(user=alice, host=host, origin="attach", key_hash=b"k" * 32),
        "portal.apitoken": ApiToken.objects.create(user=alice, name="t", scopes=["read:hosts"], token_hash=b"t" * 32),
        "portal.hostlimitrequest": HostLimitRequest.objects.create(user=alice, hosts_per_day=40, reason="a laboratory"),
        "portal.jointoken": JoinToken.objects.create(
            user=alice, login="join-1", token_hash=b"j" * 32, group="lab", max_hosts=3, expires_at=now
        ),
        "portal.requestedwork": RequestedWork.objects.create(user=alice, kind="data copy", subject=1),
        "portal.consentevent": ConsentEvent.objects.create(user=alice, kind="statistics", is_given=True, wording=1),
        "portal.sitetext": SiteText.objects.create(page="about", text="We are a club."),
        "portal.operatingfigure": OperatingFigure.objects.create(name="am.rpcs", taken_at=now, value=1),
        "portal.change": Change.objects.get(object_pk=str(project.pk), content_type__model="project"),
        "portal.confirmationrequest": ConfirmationRequest.objects.create(
            kind="project_address",
            subject="Alpha: https://beta.example.org/",
            payload={"project": project.pk, "before": "", "master_url": "", "url_signature": ""},
            asked_by=alice,
        ),
        "portal.signedentry": SignedEntry.objects.get(content__row=f"project {project.pk}"),
        "portal.maintenancerun": MaintenanceRun.objects.create(job="check", asked_by=alice, finished_at=now),
    }


def _accounting_rows(alice: User, host: Host, project: Project) -> dict[str, Model]:
    now = timezone.now()
    today = now.date()
    return {
        "accounting.project": project,
        "accounting.userproject": UserProject.objects.create(user=alice, project=project, total_ec=1234567),
        "accounting.accountsettings": AccountSettings.objects.create(user=alice),
        "accounting.announcement": Announcement.objects.create(title="News", text="Of today."),
        "badges.badge": Badge.objects.create(title="Hundred", kind="credit", threshold=100),
        "win_back_mails.mailcampaign": MailCampaign.objects.create(title="We miss you", text="Come back."),
        "accounting.projectday": ProjectDay.objects.create(project=project, day=today, rolled_up_at=now),
        "accounting.tasksource": TaskSource.objects.create(project=project),
        "accounting.projecttrouble": ProjectTrouble.objects.create(
            project=project, kind="no_work", since=now, last_at=now, volunteers=1, of_volunteers=1
        ),
        "accounting.projectstanding": ProjectStanding.objects.create(
            project=project, on_gpu=False, target=1, got=1, boost=1, day=today
        ),
        "accounting.statisticsimport": StatisticsImport.objects.create(project=project),
        "accounting.hostclient": HostClient.objects.create(host=host, cpid="c" * 32),
        "accounting.settlement": Settlement.objects.create(
            host=host, project=project, seen_on=today, read_on=today, estimated_before=0, is_whole=True
        ),
        "accounting.note": Note.objects.create(
            host=host, project=project, kind="dropped", day=today, first_at=now, last_at=now, amount=1234567
        ),
    }


def _credit_rows(alice: User, host: Host) -> dict[str, Model]:
    now = timezone.now()
    app = make_app()
    version = make_version(app)
    workunit = make_workunit(app, name="wu_of_alice")
    return {
        "credit.app": app,
        "credit.platform": Platform.objects.get(),
        "credit.appversion": version,
        "credit.hostappversion": HostAppVersion.objects.create(host=host, app=app, app_version=version),
        "credit.batch": Batch.objects.create(app=app, owner=alice, name="alices sweep"),
        "laboratory.creditexperiment": CreditExperiment.objects.create(owner=alice, title="Mine", settings=EXPERIMENT),
        "credit.confirmingpair": ConfirmingPair.objects.create(
            app=app,
            one=alice,
            other=User.objects.create_user("pair@example.org"),
            together=9,
            expected=0.5,
            chance=1e-9,
            needs_another=True,
        ),
        "credit.preview": Preview.objects.create(app=app, asked_by=alice, asked_at=now, changes=NO_CHANGES),
        "credit.statisticsexport": StatisticsExport.objects.create(started_at=now),
        "central_factors.collectedexport": CollectedExport.objects.create(url="https://example.org/project/"),
        "credit.workunit": workunit,
        "credit.result": make_result(workunit, host),
    }


def _scheduler_rows(alice: User, host: Host, of_credit: Mapping[str, Any]) -> dict[str, Model]:
    now = timezone.now()
    app, batch, workunit, result = (of_credit[f"credit.{name}"] for name in ("app", "batch", "workunit", "result"))
    return {
        "remote_jobs.jobtemplate": JobTemplate.objects.create(app=app, kind="in", name="alpine_in", text="<workunit/>"),
        "scripts.script": Script.objects.create(name="energy", kind="compare", source="#!/bin/sh\n"),
        "scheduler.appkeyword": AppKeyword.objects.create(app=app, keyword=1),
        "scheduler.planclass": PlanClass.objects.create(name="mt"),
        "scheduler.workblock": WorkBlock.objects.create(user=alice, reason="It is broken."),
        "scheduler.submitter": Submitter.objects.create(user=alice),
        "scheduler.retryentry": RetryEntry.objects.create(
            workunit=workunit, step=Step.choices[0][0], fault="f", since=now, retry_at=now
        ),
        "scheduler.releasedraft": ReleaseDraft.objects.create(creator=alice, fields=DRAFT_FIELDS),
        "scheduler.storedfile": StoredFile.objects.create(name="f", path="f", nbytes=1, md5="0" * 32, batch=batch),
        "scheduler.trickledown": TrickleDown.objects.create(result=result, text="go on"),
        "scheduler.trickle": Trickle.objects.create(
            host=host, user=alice, result=result, variety="v", text="t", written_at=now
        ),
        "scheduler.keychange": KeyChange.objects.create(old_key="o", new_key="n", signature="s"),
    }
