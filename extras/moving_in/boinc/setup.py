"""Keys and templates of the project's folder, and what its config.xml becomes."""

from __future__ import annotations

import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management import CommandError, call_command, get_commands

from credit.models import AppVersion
from extras.moving_in.boinc import folders
from extras.moving_in.boinc.programs import count
from extras.moving_in.engine import config
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery.steps import CallStep, Context
from portal.wire import signing
from portal.wire.key_files import make_file
from scheduler.models import FormerUploadKey, KeyChange

_OTHER_KEY: Final = "this site has another code-signing key, and versions or computers that know it"


def take_keys(context: Context, tally: Tally) -> None:
    """The code-signing key becomes this site's, unless it has used its own; the upload key a second verifier."""
    try:
        _take_keys(context, tally)
    except signing.SigningError as error:
        tally.leave("a key that cannot be read", str(error))


def _take_keys(context: Context, tally: Tally) -> None:
    project = folders.of(context)
    public, private = project.text("keys", "code_sign_public"), project.text("keys", "code_sign_private")
    if public is None:
        tally.leave("no keys/code_sign_public: clients would refuse programs that are signed with another key", "keys")
    else:
        _take_code_key(public, private, context, tally)
    uploads = project.text("keys", "upload_public")
    if uploads is None:
        tally.tell("no keys/upload_public: outputs of open tasks are recognised only by their names", "keys")
        return
    tally.nread += 1
    text = signing.public_key_text(signing.parse_public_key(uploads))
    is_new = context.writes and FormerUploadKey.objects.get_or_create(text=text)[1]
    count(tally, is_new)


def _take_code_key(public: str, private: str | None, context: Context, tally: Tally) -> None:
    tally.nread += 1
    text = signing.public_key_text(signing.parse_public_key(public))
    here = Path(settings.CODE_SIGNING_KEY_PUBLIC)
    is_same = here.exists() and here.read_text(encoding="ascii").strip() == text.strip()
    if private is None:
        tally.tell("no keys/code_sign_private: sign new programs where it is (docs/how-to/jobs.md)", "keys")
    if not is_same and (AppVersion.objects.exists() or KeyChange.objects.exists()):
        tally.leave(_OTHER_KEY, str(here))
        return
    if context.writes and not is_same:
        for path, content, mode in ((Path(settings.CODE_SIGNING_KEY), private, 0o600), (here, text, 0o644)):
            path.unlink(missing_ok=True)
            if content is not None:
                make_file(path, content, mode)
    count(tally, context.writes and not is_same)


def take_templates(context: Context, tally: Tally) -> None:
    """By the command of the extra that has a place for them, if it is there: one by one, so that each has its fault."""
    root = context.folder
    if root is None or not (root / "templates").is_dir() or "load_templates" not in get_commands():
        return
    for path in sorted(path for path in (root / "templates").iterdir() if path.is_file()):
        tally.nread += 1
        if not context.writes:
            tally.ntaken += 1
            continue
        said = StringIO()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / path.name).symlink_to(path.resolve())
            try:
                call_command("load_templates", folder, stdout=said)
            except CommandError as error:
                tally.leave("a template that cannot be read", str(error).splitlines()[-1])
                continue
        if "passed over" in said.getvalue():
            tally.leave("a template whose name does not begin with an app's", path.name)
        else:
            tally.ntaken += 1


def tell_settings(context: Context, tally: Tally) -> None:
    """Settings for the operator to make, and those that are not supported."""
    for reason, example in config.became(folders.of(context).config):
        tally.nread += 1
        tally.ntaken += 1
        tally.tell(reason, example)


BEFORE_PROGRAMS: Final = (CallStep("settings", tell_settings), CallStep("keys", take_keys))
TEMPLATES: Final = CallStep("templates", take_templates)
