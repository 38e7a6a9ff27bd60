"""The settings of a site with other environment variables, read in this process: starting another takes a second."""

from __future__ import annotations

import os
import runpy
import warnings
from collections.abc import Mapping
from typing import Any


def settings_of(environment: Mapping[str, str]) -> dict[str, Any]:
    """What `portal.settings` makes of this environment; SettingError if it makes nothing of it."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the module has been imported, too
            return {name: value for name, value in runpy.run_module("portal.settings").items() if name.isupper()}
    finally:
        os.environ.clear()
        os.environ.update(before)
