"""The two files by which BOINC in an installed image makes its first contact with a join token (BOINC protocol)."""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import escape

from django.conf import settings

from portal.models import JoinToken
from portal.wire.credentials import client_password_hash


class ImageFile(NamedTuple):
    """A file for BOINC's data folder."""

    name: str
    content: str


def image_files(token: JoinToken, text: str) -> list[ImageFile]:
    """Return the files for this token; ``text``: the token in clear."""
    url = (
        f"<acct_mgr>\n    <name>{escape(settings.SITE_NAME)}</name>\n    <url>{settings.SITE_URL}</url>\n</acct_mgr>\n"
    )
    password_hash = client_password_hash(text, token.login)
    login = (
        f"<acct_mgr_login>\n    <login>{token.login}</login>\n"
        f"    <password_hash>{password_hash}</password_hash>\n</acct_mgr_login>\n"
    )
    return [ImageFile("acct_mgr_url.xml", url), ImageFile("acct_mgr_login.xml", login)]
