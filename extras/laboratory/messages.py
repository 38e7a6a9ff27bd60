"""The sentences of the laboratory that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # Why an experiment has no results (worker.py, trials/process.py)
        "experiment_site_fault": _("The experiment failed because of a fault of this site. The operators can see why."),
        "experiment_time_limit": _(
            "It took more than %(secs)s s of processor time, or %(clock_secs)s s by the clock. Try fewer jobs, "
            "populations or rules."
        ),
        "experiment_memory_limit": _("It needs more than %(mib)s MiB of memory. Try fewer jobs."),
    }
)
