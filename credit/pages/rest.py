"""REST API of the tasks that a volunteer's computers got from this project."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from credit.models import Result
from credit.pages import task_reads
from credit.pages.state_texts import state_text
from portal.models import ApiToken
from portal.rest.fields import AmountField, decimal_text
from portal.rest.views import ApiView, ListQuery, id_field, page_of

_STATES: Final = {
    "in_progress": ("progress", ("in_progress", "overdue")),
    "pending": ("pending", ("pending",)),
    "valid": ("valid", ("valid",)),
    "invalid": ("invalid", ("invalid", "too_late", "not_checkable")),
    "error": ("error", ("error", "aborted", "not_sent", "no_reply", "abandoned")),
}
"""The API's name of a state, with the name of the list and the codes that belong to it."""
_STATE_BY_CODE: Final = {code: state for state, (_, codes) in _STATES.items() for code in codes}
_OTHER: Final = "other"
_SUBSTATES: Final = [*_STATE_BY_CODE, "unsent", "not_needed", "not_checked"]


class TaskResult(serializers.Serializer[Any]):
    """A task: what one computer was given to compute, and what became of it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    workunit_id = serializers.IntegerField(help_text="The workunit that it is a copy of.")
    app = serializers.CharField(help_text="The app's short name.")
    host_id = serializers.IntegerField(allow_null=True, help_text="Null if the computer was deleted.")
    processor_type = serializers.CharField(help_text="CPU, NVIDIA, ATI, intel_gpu or apple_gpu.")
    state = serializers.ChoiceField(choices=[*_STATES, _OTHER])
    substate = serializers.ChoiceField(choices=_SUBSTATES, help_text="The state in more detail.")
    sent_at = serializers.DateTimeField(allow_null=True)
    deadline_at = serializers.DateTimeField(allow_null=True)
    received_at = serializers.DateTimeField(allow_null=True)
    exit_status = serializers.IntegerField(allow_null=True)
    elapsed_secs = AmountField(allow_null=True, help_text="Run time.")
    cpu_secs = AmountField(allow_null=True, help_text="Processor time.")
    claimed_credit = AmountField(allow_null=True)
    granted_credit = AmountField(allow_null=True, help_text="Null until decided.")
    partial_credit = AmountField(help_text="Granted while it ran; included in the credit granted at the end.")


class TasksQuery(ListQuery):
    """Filters of the list of tasks."""

    state = serializers.ChoiceField(choices=list(_STATES), required=False, help_text="Only tasks in this state.")
    host = id_field("computer")
    app = serializers.CharField(max_length=64, required=False, help_text="Only tasks of the app with this short name.")


class TasksView(ApiView):
    """My computers' tasks of this project, for as long as it keeps them."""

    scope = ApiToken.Scope.TASKS
    query_class = TasksQuery

    @extend_schema(operation_id="tasks_list", parameters=[TasksQuery], responses=page_of(TaskResult, "Tasks"))
    def get(self, request: Request) -> Response:
        query, now = self.query(), timezone.now()
        tasks = task_reads.own_tasks(self.volunteer, _STATES[query["state"]][0] if "state" in query else "")
        columns = {"host": "host_id", "app": "app__name"}
        tasks = tasks.filter(**{column: query[name] for name, column in columns.items() if name in query})
        return self.id_page(tasks, query, lambda task: task_result(task, now))


class TaskView(ApiView):
    """One task."""

    scope = ApiToken.Scope.TASKS

    @extend_schema(operation_id="tasks_retrieve", responses=TaskResult)
    def get(self, request: Request, pk: int) -> Response:
        self.query()
        task = task_reads.own_tasks(self.volunteer).filter(pk=pk).first()
        if task is None:
            raise NotFound("There is no such task of yours.")
        return Response(task_result(task, timezone.now()))


def task_result(task: Result, now: dt.datetime) -> dict[str, Any]:
    code = state_text(task, now).code
    return {
        "id": task.pk,
        "name": task.name,
        "workunit_id": task.workunit_id,
        "app": task.app.name,
        "host_id": task.host_id,
        "processor_type": task.processor_type,
        "state": _STATE_BY_CODE.get(code, _OTHER),
        "substate": code,
        "sent_at": _moment(task.sent_at),
        "deadline_at": _moment(task.deadline_at),
        "received_at": _moment(task.received_at),
        "exit_status": task.exit_status,
        "elapsed_secs": _amount(task.elapsed_secs),
        "cpu_secs": _amount(task.cpu_secs),
        "claimed_credit": _amount(task.claimed_credit),
        "granted_credit": _amount(task.granted_credit),
        "partial_credit": decimal_text(task.partial_credit),
    }


def _moment(moment: dt.datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _amount(amount: float | None) -> str | None:
    return None if amount is None else decimal_text(amount)
