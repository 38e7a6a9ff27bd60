"""The demo's texts about its app and its team, shown in the reader's language (portal.languages.supplied)."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

APP: Final = _("Where a river leaves the sand that it carries, grain by grain. All its jobs are given out.")
TEAM: Final = _("Two neighbours on the same river.")
SUPPLIED: Final = (APP, TEAM)
