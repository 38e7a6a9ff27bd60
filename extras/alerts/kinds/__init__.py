"""All kinds of channels, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extras.alerts.kinds import ntfy, push, webhook
from extras.alerts.kinds.kind import ChannelKind

KINDS: Final[Mapping[str, ChannelKind]] = {kind.name: kind for kind in (push.KIND, ntfy.KIND, webhook.KIND)}
