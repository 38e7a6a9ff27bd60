"""The results of the REST API: their fields, and how each is made from a row.

Credit and seconds are decimal text with six digits after the point, so that no reader rounds them.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet, Sum
from rest_framework import serializers

from accounting.engine.amounts import format_micro
from accounting.engine.states import DayFlag
from accounting.exchange.day_rows import DayRow, Names
from accounting.exchange.downloads import row_values
from accounting.ledger.texts import explain
from accounting.models import Note, OwnAccount, Project, UserProject
from portal.models import Host
from portal.rest.fields import AmountField, decimal_text


class AmountsResult(serializers.Serializer[Any]):
    """The six amounts."""

    cpu_credit = AmountField(help_text="Estimated credit of processors.")
    gpu_credit = AmountField(help_text="Estimated credit of GPUs.")
    cpu_secs = AmountField(help_text="Run time of processors, seconds.")
    gpu_secs = AmountField(help_text="Run time of GPUs, seconds.")
    jobs_succeeded = serializers.IntegerField()
    jobs_failed = serializers.IntegerField()


class FlaggedResult(AmountsResult):
    """Amounts with facts about them."""

    flags = serializers.ListField(
        child=serializers.ChoiceField(choices=[name.lower() for name in DayFlag.__members__]),
        help_text="Facts about the amounts; docs/reference/api.md explains each.",
    )


class DayResult(FlaggedResult):
    """The amounts credited to one computer at one project on one UTC day."""

    day = serializers.DateField()
    project_id = serializers.IntegerField()
    project = serializers.CharField(help_text="The project's name.")
    project_url = serializers.CharField(help_text="The project's master URL.")
    host_id = serializers.IntegerField()
    host = serializers.CharField(help_text="The computer's name.")
    granted_credit = AmountField(
        allow_null=True,
        help_text="Credit that the project granted, on the day of the statistics that reported it; null: not known.",
    )


class SumResult(FlaggedResult):
    """The totals of one step, as far as it lies within the range."""

    first = serializers.DateField()
    last = serializers.DateField()
    project_id = serializers.IntegerField(allow_null=True, help_text="Null unless `by=project`.")
    host_id = serializers.IntegerField(allow_null=True, help_text="Null unless `by=host`.")


class SumsResult(serializers.Serializer[Any]):
    """Totals of a range and of each of its steps with work."""

    total = AmountsResult()
    results = SumResult(many=True)


class HostResult(serializers.ModelSerializer[Host]):
    """A computer: speeds in FLOPS and operations/s, sizes in bytes."""

    name = serializers.CharField(help_text="The name that the owner gave it, or else the one that it reports.")
    groups = serializers.ListField(child=serializers.CharField(), help_text="The groups that the owner put it into.")
    granted_credit = AmountField(
        allow_null=True, help_text="Credit that projects granted to it, by their statistics; null: not known."
    )
    coprocs = serializers.ListField(child=serializers.DictField(), help_text="GPUs and other coprocessors.")

    class Meta:
        model = Host
        fields = (
            "id",
            "name",
            "venue",
            "groups",
            "granted_credit",
            "created_at",
            "last_contact_at",
            "retired_at",
            "client_version",
            "platform_name",
            "os_name",
            "os_version",
            "ncpus",
            "p_vendor",
            "p_model",
            "p_fpops",
            "p_iops",
            "m_nbytes",
            "d_total",
            "coprocs",
        )
        read_only_fields = fields


class OwnAccountResult(serializers.Serializer[Any]):
    """My own account at a project where each volunteer has one; its key is never disclosed."""

    state = serializers.ChoiceField(choices=OwnAccount.State.values)
    state_at = serializers.DateTimeField()
    number = serializers.IntegerField(allow_null=True, help_text="The account's number there; null: not known.")
    total_credit = AmountField(allow_null=True, help_text="What the project says of it; null: nothing.")


class ProjectResult(serializers.ModelSerializer[Project]):
    """A project and my work for it; totals are a few minutes old."""

    total_credit = AmountField(help_text="My estimated credit there, on all computers together.")
    recent_credit_per_day = AmountField(help_text="My recent average (half-life one week).")
    is_chosen = serializers.BooleanField(help_text="Whether I chose it by hand.")
    resource_share = serializers.FloatField(allow_null=True, help_text="My share for it; null: the default share.")
    own_account = OwnAccountResult(allow_null=True, help_text="My own account there; null: none was entered.")

    class Meta:
        model = Project
        fields = (
            "id",
            "name",
            "master_url",
            "web_url",
            "summary",
            "description",
            "is_active",
            "default_share",
            "total_credit",
            "recent_credit_per_day",
            "is_chosen",
            "resource_share",
            "own_account",
        )
        read_only_fields = fields


class NoteResult(serializers.Serializer[Any]):
    """A note about a computer's reports on one day."""

    id = serializers.IntegerField()
    day = serializers.DateField()
    kind = serializers.CharField()
    host_id = serializers.IntegerField()
    project_id = serializers.IntegerField(allow_null=True)
    happened = serializers.CharField()
    meaning = serializers.CharField()
    to_do = serializers.CharField(allow_blank=True)
    is_loss = serializers.BooleanField(help_text="Whether some of the reported work does not count.")
    count = serializers.IntegerField(help_text="How often it happened on that day.")
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


def day_result(row: DayRow, names: Names) -> dict[str, Any]:
    """Return a day as JSON, with the names that a downloaded row has."""
    return row_values(row, names)


def with_grants(hosts: QuerySet[Host]) -> QuerySet[Any]:
    """Annotate each with ``granted_micro``: the sum of projects' grants to it; NULL: unknown."""
    return hosts.annotate(granted_micro=Sum("granted_totals__total_credit"))


def host_result(host: Any) -> dict[str, Any]:
    """Return a computer as JSON, made from a row of `with_grants`."""
    host.granted_credit = None if host.granted_micro is None else format_micro(int(host.granted_micro))
    return dict(HostResult(host).data)


def project_result(project: Project, mine: UserProject | None, own: OwnAccount | None) -> dict[str, Any]:
    return {
        "id": project.pk,
        "name": project.name,
        "master_url": project.master_url,
        "web_url": project.web_url,
        "summary": project.summary,
        "description": project.description,
        "is_active": project.is_active,
        "default_share": project.default_share,
        "total_credit": format_micro(mine.total_ec if mine else 0),
        "recent_credit_per_day": decimal_text(mine.avg_ec if mine else 0.0),
        "is_chosen": mine.is_chosen if mine else False,
        "resource_share": mine.resource_share if mine else None,
        "own_account": own
        and {
            "state": own.state,
            "state_at": own.state_at.isoformat(),
            "number": own.number or None,
            "total_credit": None if own.total_credit is None else format_micro(own.total_credit),
        },
    }


def note_result(note: Note) -> dict[str, Any]:
    text = explain(note, note.project.name if note.project else "")
    return {
        "id": note.pk,
        "day": note.day.isoformat(),
        "kind": note.kind,
        "host_id": note.host_id,
        "project_id": note.project_id,
        "happened": text.happened,
        "meaning": text.meaning,
        "to_do": text.to_do,
        "is_loss": text.is_loss,
        "count": note.count,
        "first_at": note.first_at.isoformat(),
        "last_at": note.last_at.isoformat(),
    }
