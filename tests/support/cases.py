"""Requests of computers that went wrong once, in tests/data/cases: sent as their client would."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from pathlib import Path

from django.db.models import F

from accounting.models import HostLedger
from portal.models import User
from portal.wire.credentials import client_password_hash
from tests.support.am_rpc import Reply, post

FOLDER = Path(__file__).parents[1] / "data" / "cases" / "account-manager"
DAY = dt.timedelta(days=1)


@dataclass
class CaseComputer:
    """The computer of a case, with the key and the id that it was given."""

    case: str
    key: str = ""
    token: str = ""

    def message(self) -> bytes:
        text = (FOLDER / f"{self.case}.xml").read_text()
        return text.replace("@KEY@", self.key).replace("@HOST@", self.token).encode()

    def send(self, **texts: str) -> Reply:
        """Send the case's request, with other texts in the first elements of these names within its project."""
        head, start, project = self.message().partition(b"<project>")
        for tag, text in texts.items():
            project, times = re.subn(rf"<{tag}>[^<]*<".encode(), f"<{tag}>{text}<".encode(), project, count=1)
            assert times
        reply = post(head + start + project)
        assert reply.error == (0, "")
        return reply

    def a_day_passes(self) -> None:
        """As if its last report had been a day earlier, by our clock and by its own."""
        HostLedger.objects.filter(host__token=self.token).update(
            last_at=F("last_at") - DAY, client_now=F("client_now") - DAY.total_seconds()
        )


def attached(case: str, user: User) -> CaseComputer:
    """The computer after its first contact a day ago: the case's request without projects, by e-mail and password."""
    computer = CaseComputer(case)
    password = client_password_hash(f"{user.name.lower()}'s secret", user.email)
    login = f"<name>{user.email}</name>\n<password_hash>{password}</password_hash>"
    first = computer.message().replace(b"<authenticator></authenticator>", login.encode())
    reply = post(re.sub(rb"<project>.*</project>|<opaque>.*</opaque>", b"", first, flags=re.DOTALL))
    assert reply.error == (0, "")
    computer.key, computer.token = reply.text("authenticator"), reply.text("opaque/host")
    computer.a_day_passes()
    return computer
