"""The description of a kind of channel: how one is added, and what is posted to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extras.alerts.forms import ChannelForm
from extras.alerts.wire import Alert, Destination, Request

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A kind of channel. ``name``: as it is stored. ``path``: of the address that a filled-in form is sent to.

    ``title``, ``about``, ``button``: of the form; ``about`` is HTML. ``request``: builds the request, at the time of
    the call. ``signs``: whether a secret of the channel signs its messages, and can be renewed.
    """

    name: str
    path: str
    label: StrOrPromise
    form: type[ChannelForm]
    title: StrOrPromise
    about: StrOrPromise
    button: StrOrPromise
    request: Callable[[Alert, Destination], Request]
    signs: bool = False
    template: str = "alerts/_add.html"
