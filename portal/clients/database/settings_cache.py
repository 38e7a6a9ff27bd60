"""Values made from settings once: reading a setting through Django costs as much as calling a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from django.core.signals import setting_changed

Made = TypeVar("Made")


def cached_setting(make: Callable[[], Made]) -> Callable[[], Made]:
    """Wrap a function so that it is called only once, and again after a test has changed a setting."""
    made = lru_cache(maxsize=1)(make)
    setting_changed.connect(lambda **_: made.cache_clear(), weak=False)
    return made
