"""The text of a page, without tags and with white space folded."""

from __future__ import annotations

import html
import re
from typing import Any


def text_of(response: Any) -> str:
    """The text of a test client's response; thin and unbreakable spaces become plain ones."""
    body = re.sub(r"<(script|style|head).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", body))
    return " ".join(text.replace("\u00a0", " ").replace("\u202f", " ").split())
