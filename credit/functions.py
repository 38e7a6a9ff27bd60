"""The functions that apps may name: those that the server's operators registered, and those that the site's apps
provide.

An app's settings are in the database, so anyone who may change them in the admin chooses among these names; nobody can
make the server call `os.system`. A name is imported only after it was found in the list.

A function may be slow (`SlowFunction`): then it is called while no row is locked, many times in a session.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol, TypeGuard

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext

from portal.extras import site_apps


class FunctionKind(StrEnum):
    """The purpose of a function: the field of an app that names it."""

    COMPARISON = "comparison_function"
    ASSIMILATION = "assimilation_function"
    TRICKLE = "trickle_function"


class Session(Protocol):
    """A series of calls of a slow function.

    ``is_over``: no more calls are made after too many failures; nobody is at fault.
    """

    is_over: bool

    def __call__(self, *arguments: Any) -> Any: ...


class SlowFunction(Protocol):
    """A function that takes longer than locks may be held. Each of its sessions belongs to one worker."""

    def session(self) -> AbstractContextManager[Session]: ...


def is_slow(function: object) -> TypeGuard[SlowFunction]:
    return hasattr(function, "session")


class UnregisteredFunction(Exception):
    """The name is not in the list; the message says how to add it."""


def registered(kind: FunctionKind) -> list[str]:
    """Return the names that an app may have in this field, in alphabetical order."""
    return sorted({*_of_modules(kind), *(name for app in site_apps() for name in app.made_functions(kind))})


def _of_modules(kind: FunctionKind) -> set[str]:
    return {*(name for app in site_apps() for name in app.functions().get(kind, ())), *settings.APP_FUNCTIONS}


def load(kind: FunctionKind, name: str) -> Any:
    """Import the registered function of this name, which may be a `SlowFunction`.

    Raises UnregisteredFunction, or whatever importing its module raises.
    """
    for app in site_apps():
        if (made := app.made_function(kind, name)) is not None:
            return made
    if name not in _of_modules(kind):
        raise UnregisteredFunction(
            gettext("the function %(name)s is not registered on this server: add it to APP_FUNCTIONS") % {"name": name}
        )
    function: Callable[..., Any] = import_string(name)
    if not callable(function):
        raise TypeError(gettext("%(name)s is not a function") % {"name": name})
    return function
