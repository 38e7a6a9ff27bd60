"""REST API of blocks: which computers and volunteers get no new jobs, and why (docs/how-to/operate.md)."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.audit.who import changes_by
from portal.models import ApiToken, Host, User
from portal.rest.views import MAX_ID, ListQuery, OperatorView, page_of
from scheduler.models import WorkBlock


class BlockResult(serializers.Serializer[Any]):
    """A block: a computer, or all computers of a volunteer, that get no new jobs."""

    id = serializers.IntegerField()
    host = serializers.IntegerField(allow_null=True)
    user = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(help_text="The reason, shown to the owner.")
    created_at = serializers.DateTimeField()


class NewBlock(serializers.Serializer[Any]):
    """The computer or volunteer to block."""

    host = serializers.IntegerField(min_value=1, max_value=MAX_ID, required=False, help_text="A computer's id.")
    user = serializers.IntegerField(min_value=1, max_value=MAX_ID, required=False, help_text="Or a volunteer's.")
    reason = serializers.CharField(max_length=300, help_text="What is wrong, and what the owner can do.")


class BlocksView(OperatorView):
    """List blocks, or create one."""

    scope = ApiToken.Scope.PROJECT
    query_class = ListQuery
    http_method_names = ["get", "head", "options", "post"]

    @extend_schema(operation_id="blocks_list", parameters=[ListQuery], responses=page_of(BlockResult, "Blocks"))
    def get(self, request: Request) -> Response:
        self.need("scheduler.view_workblock")
        return self.id_page(WorkBlock.objects.all(), self.query(), _result)

    @extend_schema(operation_id="blocks_create", request=NewBlock, responses={200: BlockResult, 201: BlockResult})
    def post(self, request: Request) -> Response:
        """Block a computer or a volunteer: 201, or 200 if there was a block, which gets this reason. Safe to repeat."""
        self.need("scheduler.add_workblock", "scheduler.change_workblock")
        self.no_query()
        given = self.body(NewBlock)
        if ("host" in given) == ("user" in given):
            raise serializers.ValidationError({"host": ["Name either a computer or a volunteer."]})
        name, model = ("host", Host) if "host" in given else ("user", User)
        with transaction.atomic(), changes_by(self.volunteer):
            # If two requests come at once, the second waits.
            whom = model.objects.select_for_update(no_key=True).filter(pk=given[name]).first()
            if whom is None:
                raise serializers.ValidationError({name: ["There is none with this id."]})
            block = WorkBlock.objects.filter(**{name: whom}).first()
            is_new = block is None
            block = block or WorkBlock(**{name: whom})
            block.reason = given["reason"]
            block.save()
        return Response(_result(block), status=201 if is_new else 200)


class BlockView(OperatorView):
    """A block, which can be ended."""

    scope = ApiToken.Scope.PROJECT
    http_method_names = ["delete", "options"]

    @extend_schema(operation_id="blocks_delete", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """End the block, so that jobs are sent again."""
        self.need("scheduler.delete_workblock")
        self.query()
        with transaction.atomic(), changes_by(self.volunteer):
            get_object_or_404(WorkBlock, pk=pk).delete()
        return Response(status=204)


def _result(block: WorkBlock) -> dict[str, Any]:
    return {
        "id": block.pk,
        "host": block.host_id,
        "user": block.user_id,
        "reason": block.reason,
        "created_at": block.created_at.isoformat(),
    }
