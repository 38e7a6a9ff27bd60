"""Batches whose jobs are over, by the project server's own means where they are ours."""

from __future__ import annotations

import datetime as dt
from typing import Any

from credit.models import Batch, Outcome, Result, ServerState, ValidateState, Workunit
from portal.models import Host
from scheduler.engine.outputs import expected_and_received
from scheduler.lifecycle import transitioner
from tests.support.credit_factories import NOON
from tests.support.upload_requests import post, upload_body

DAY = dt.timedelta(days=1)
DEFAULTS: dict[str, Any] = {
    "fpops_est": 1e12,
    "output_files": [{"open_name": "out", "max_nbytes": 1000}, {"open_name": "log", "max_nbytes": 9, "optional": True}],
    "input_files": [{"open_name": "in", "content": "1 2\n"}],
}


def send_and_report(result: Result, host: Host, outcome: Outcome = Outcome.SUCCESS) -> None:
    """What scheduler and upload handler do with a result, by their own means where they are ours."""
    result.server_state, result.host, result.user = ServerState.IN_PROGRESS, host, host.owner
    result.sent_at, result.deadline_at = NOON, NOON + 7 * DAY
    result.save()
    if outcome == Outcome.SUCCESS:
        assert post(upload_body(f"{result.name}_0", b"42\n", max_nbytes=1000)) == "0"
    received = expected_and_received(result.workunit.output_files, result.name, result.uploads.all())
    result.server_state, result.outcome, result.received_at = ServerState.OVER, outcome, NOON
    result.outputs, result.output_digest, result.stderr_text = received.outputs, received.digest, "many words"
    result.save()
    Workunit.objects.filter(pk=result.workunit_id).update(transition_at=NOON)


def validate(workunit: Workunit) -> None:
    """The verdict of a validator: all successes are valid, the first is canonical."""
    results = workunit.results.filter(outcome=Outcome.SUCCESS)
    results.update(validate_state=ValidateState.VALID, granted_credit=2.5, granted_at=NOON)
    canonical = results.order_by("id").first()
    Workunit.objects.filter(pk=workunit.pk).update(
        canonical_result=canonical, need_validate=False, transition_at=NOON, canonical_credit=2.5
    )


def finish(batch: Batch, host: Host) -> None:
    """Every workunit of the batch is computed, validated and passed on."""
    for workunit in batch.workunits.all():
        for result in workunit.results.all():
            send_and_report(result, host)
        transitioner.run(NOON)
        validate(workunit)
    transitioner.run(NOON)
