"""Register scripts with the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from django.db.models import Model
    from django_stubs_ext import StrOrPromise

    from portal.audit.proposals import Proposal
    from portal.audit.register import Audited
    from portal.audit.two_persons import StepKind


class ScriptsConfig(extras.SiteApp):
    name = "extras.scripts"
    verbose_name = _("Scripts")
    room = "project"

    def admin_group(self) -> StrOrPromise:
        from portal.dashboard.navigation import JOBS

        return JOBS

    def rights(self) -> Mapping[str, Sequence[str]]:
        return {"Project administrator": [f"scripts.{action}_script" for action in ("view", "add", "change", "delete")]}

    def audited(self) -> Sequence[Audited]:
        from extras.scripts.models import Script
        from portal.audit.register import Audited

        return [Audited(Script)]

    def two_person_steps(self) -> Mapping[str, StepKind]:
        from extras.scripts.storing import STEPS

        return STEPS

    def needs_two_persons(self, row: Model, proposal: Proposal) -> bool:
        from extras.scripts.storing import is_code

        return is_code(row, proposal)

    def made_functions(self, kind: str) -> Sequence[str]:
        from extras.scripts.models import Script

        return [script.function_name for script in Script.of_kind(kind)] if self.is_in_use else []

    def made_function(self, kind: str, name: str) -> Any:
        from extras.scripts.calls import function_named

        return function_named(kind, name) if self.is_in_use else None
