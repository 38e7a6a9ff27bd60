"""Texts of libraries that have no German translation of their own, or one that does not fit: ours come first.

They are marked here alone, so that they get into the portal's catalogue.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

TEXTS: Final = ()
