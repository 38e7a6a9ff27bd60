"""Shared by several tables: the longest name, and random tokens."""

from __future__ import annotations

import secrets
from typing import Final

MAX_NAME_CHARS: Final = 100
"""The longest name of a volunteer or a computer."""


def new_token() -> str:
    return secrets.token_hex(16)
