"""The words of releases: states, and in the page's language what commands say in English."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from credit.models import AppVersion
from portal.languages.stored import translated
from scheduler.engine.release_states import ReleaseAction, ReleaseState

STATES: Final = {
    ReleaseState.DRAFT: _("draft"),
    ReleaseState.BETA: _("in test"),
    ReleaseState.RELEASED: _("released"),
    ReleaseState.WITHDRAWN: _("withdrawn"),
}
_DONE: Final = {
    ReleaseAction.TEST: _("%(version)s is being tested: only testers’ computers get it."),
    ReleaseAction.RELEASE: _("%(version)s is released to all computers."),
    ReleaseAction.WITHDRAW: _("%(version)s is withdrawn: computers no longer get it. Running jobs continue."),
}
_ERRORS: Final = (
    gettext_noop("test is not possible: the state is %(state)s"),
    gettext_noop("release is not possible: the state is %(state)s"),
    gettext_noop("withdraw is not possible: the state is %(state)s"),
    gettext_noop("there is no older version to go back to, or this one is not released to all"),
    gettext_noop("%(name)s is not a name of %(rule)s."),
    gettext_noop("%(name)s: a program file cannot have this name; it describes versions in folders."),
    gettext_noop("%(name)s: %(size)s bytes; the limit is %(most)s. The command accepts larger files."),
    gettext_noop("A version has at most %(number)s files."),
    gettext_noop("This version is already stored. Its files never change: prepare another version."),
    gettext_noop("This version is already stored. Its state is %(state)s and stays so."),
    gettext_noop(
        "This machine has no code-signing key yet. Make one with “manage.py prepare_project”, or put the public key "
        "where CODE_SIGNING_KEY_PUBLIC says."
    ),
    gettext_noop("The private key is not on this machine. Sign the manifest where it is."),
    gettext_noop("%(name)s: this draft has no such file."),
    gettext_noop("%(name)s: not the signature of this file by the project's key; clients would refuse it."),
    gettext_noop("Signatures have at most %(number)s bytes."),
    gettext_noop('This is not what sign_manifest writes: {"signatures": {NAME: TEXT, …}}.'),
    gettext_noop("This is not what sign_manifest writes: %(reason)s"),
    gettext_noop(
        "%(name)s: clients would take it for a new code-signing key, because its first line begins with a number and "
        "the next one with hexadecimal digits. Put another line before them, such as a comment, or compress the file."
    ),
    gettext_noop("%(name)s: it reads as something else that has a meaning for clients or for this site: %(meaning)s."),
    gettext_noop("%(name)s is not signed yet."),
    gettext_noop("%(version)s was released before, but not like this. Give it another version number."),
    gettext_noop("%(version)s was released before. Give it another version number."),
    gettext_noop("There is no plan class %(name)s. Make it in the admin first."),
    gettext_noop("processor_type: %(type)s, but plan class %(name)s is for %(wanted)s."),
    gettext_noop("%(where)s, files: exactly one of them must have main_program = true."),
    gettext_noop("files: exactly one of them must have main_program = true."),
    gettext_noop("files: 1 to %(number)s of them."),
    gettext_noop("%(field)s: a number from %(low)s to %(high)s."),
    gettext_noop("gpu_usage: more than 0 for a GPU type, otherwise 0."),
    gettext_noop("avg_ncpus: more than 0 if no GPU is used, or the version would never be sent."),
    gettext_noop("api_version: three numbers from 0 to 999 with dots between them, such as 7.20.0, or empty."),
    gettext_noop("cmdline: one line without control characters and without <."),
    gettext_noop("cmdline: more than %(number)s bytes, which is all that clients read (& counts as 5, > as 4)."),
    gettext_noop("%(name)s is not signed with the project's key. Sign it with the key in force."),
    gettext_noop(
        "%(name)s: a file of this name was stored before, with other content. Clients would never fetch the new one. "
        "Give it a new name."
    ),
    gettext_noop("it has more than %(number)s bytes."),
    gettext_noop("it has more than %(number)s files."),
    gettext_noop("%(name)s is compressed in another way than ZIP programs usually do."),
    gettext_noop("%(name)s has more than %(number)s bytes."),
    gettext_noop("there is no file %(name)s in it."),
    gettext_noop("a file in it is cut off"),
    gettext_noop("This key was the project's before. Make a new one."),
    gettext_noop("The new key is not signed by the one in force: clients would refuse it."),
    gettext_noop("%(name)s is not signed: it was released meanwhile. Sign the list again."),
    gettext_noop("%(name)s: not the new key's signature of this file."),
)
"""As commands say it."""


def error(raised: BaseException) -> str:
    """What was refused, and why."""
    return translated(str(raised), _ERRORS)


def done(version: AppVersion | str, action: ReleaseAction) -> str:
    """What has been done with a version."""
    return str(_DONE[action]) % {"version": version}
