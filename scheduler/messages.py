"""The sentences of the project server that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # What of a computer's description is not believed (scheduler/rpc/host_record.py)
        "reported_above_believed": _("%(field)s is %(claimed)s and counts as %(most)s, the most that is believed"),
        "reported_gpu_speed": _("%(field)s is %(claimed)s, so its speed is not known; tasks get average credit"),
        # What of a job's report was wrong (scheduler/rpc/reports.py)
        "output_missing": _("%(name)s was not uploaded"),
        "output_refused": _("%(name)s could not be uploaded: %(reason)s"),
        "output_differs": _("%(name)s has another MD5 on the computer than here"),
        "reported_run_time": _("final_elapsed_time is %(secs)s s, but the job was out for %(most_secs)s s only"),
        "job_lost": _("The computer does not have this job any more"),
        # Why a trickle-up message was of no use (scheduler/rpc/trickles.py)
        "trickle_unfinished": _("Tries that did not end: %(number)s."),
        "trickle_abandoned": _(
            "Given up: its function was called %(number)s times and did not come back; see the log."
        ),
        "trickle_too_slow": _("The function that takes this app’s messages did not end in time."),
        "trickle_without_fields": _("There is no <elapsed_time> or no <result_name> in the message."),
        "trickle_of_other_job": _("The message names another job than the one that it comes from."),
        "trickle_no_number": _("<elapsed_time> is not a number."),
        "trickle_without_credit": _(
            "No credit is due now: the job is over, the run time was credited, the computer cannot have done more, or "
            "the claim is too uncertain before the final report."
        ),
        "trickle_failed": _("The function that takes this app’s messages failed; see the log."),
    }
)
