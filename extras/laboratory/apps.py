"""Register the credit laboratory with the site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from django.utils.translation import gettext_lazy as _

from portal import extras


class LaboratoryConfig(extras.SiteApp):
    name = "extras.laboratory"
    verbose_name = _("Credit laboratory")
    room = "project"

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from extras.laboratory import request, worker

        return {request.KIND: worker.carry_out}

    def supplied_texts(self) -> Iterable[str]:
        from extras.laboratory.trials.demo_texts import SUPPLIED

        return SUPPLIED

    def rights(self) -> Mapping[str, Sequence[str]]:
        actions = ("view", "add", "change", "delete")
        return {"Project administrator": [f"laboratory.{action}_creditexperiment" for action in actions]}
