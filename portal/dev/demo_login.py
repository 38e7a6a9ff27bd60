"""The demo's two logins. They are public: a page shows them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Login(NamedTuple):
    email: str
    password: str


VOLUNTEER: Final = Login("demo@example.org", "cobblestone")
OPERATOR: Final = Login("operator@example.org", "cobblestone")
