"""Register the scenario editor with the site."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal import extras


class ScenarioEditorConfig(extras.SiteApp):
    name = "extras.scenario_editor"
    verbose_name = _("Scenario editor")
    room = "emulator"
