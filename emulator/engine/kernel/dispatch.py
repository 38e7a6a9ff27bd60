"""Which runs the kernel can make; those of policies from outside are made on objects."""

from __future__ import annotations

from emulator.engine.client import Client
from emulator.engine.contact import Contact
from emulator.engine.kernel.compiled import IS_COMPILED
from emulator.engine.kernel.exchange import Compiled, Exchange
from emulator.engine.policy import Policy


def exchange_of(client: Client, contact: Contact, policy: Policy) -> Exchange | None:
    """The table of a run that is made in arrays; None for one that is made on objects."""
    if not IS_COMPILED or not isinstance(policy, Compiled):
        return None
    return Exchange(client, contact, policy, uncompiled=False)
