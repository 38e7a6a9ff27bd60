"""Science United's signing key and projects: few, so each is a row of its own, with its account key sealed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounting.engine.addresses import address_key
from accounting.engine.choice.facts import MAX_SHARE
from accounting.models import Project, ProjectProfile
from accounting.projects import signing_key
from accounting.rpc import account_keys
from extras.moving_in.boinc.values import ascii_text, line, text
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import finite
from extras.moving_in.machinery.steps import CallStep, Context
from extras.moving_in.source import Row, Source, Table
from portal.wire import signing
from portal.wire.key_files import make_file

_TABLE: Final = Table(
    "su_project",
    {"name": b"", "url": b"", "url_signature": b"", "share": 10, "status": 2, "web_url": b"", "authenticator": b""},
)
_KEYS: Final = "keys"
_IN_USE: Final = 2
_USUAL_SHARE: Final = 10
_OURS: Final = 100
BEFORE_MOVE: Final = "Before the move"


def project_keys(source: Source) -> dict[int, str]:
    """The keys of the addresses of its projects, by which ours are found, by their numbers there."""
    return {number: address_key(url.decode("latin-1")) for number, url in source.all("SELECT id, url FROM su_project")}


def _take_key(context: Context, tally: Tally) -> None:
    """The key by which clients check addresses of projects: they refuse any other one for ever."""
    if context.folder is None:
        tally.tell(
            "no folder given: if its signing key is not installed here, clients will refuse new projects",
            "--project-folder",
        )
        return
    private, public = context.folder / _KEYS / "code_sign_private", context.folder / _KEYS / "code_sign_public"
    tally.nread += 1
    try:
        key = signing.parse_public_key(public.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError, signing.SigningError) as error:
        tally.leave("its public signing key cannot be read", f"{public}: {error}")
        return
    installed = Path(settings.AM_SIGNING_KEY_PUBLIC)
    if installed.exists():
        if signing_key.public_key() == key:
            tally.ntaken += 1
        else:
            tally.leave(
                "this site has another signing key, which clients would always refuse: remove both of its files",
                installed,
            )
        return
    tally.ntaken += 1
    if not context.writes:
        return
    if private.exists():
        make_file(Path(settings.AM_SIGNING_KEY), private.read_text(encoding="ascii"))
    else:
        tally.tell("its private signing key is not in the folder: sign projects' addresses where it is", private)
    make_file(installed, public.read_text(encoding="ascii"), 0o644)
    tally.nchanged += 1


def _take_projects(context: Context, tally: Tally) -> None:
    public_key, seen = _public_key(context), set[str]()
    for row in context.source.rows(_TABLE, 0, None):
        tally.nread += 1
        key = address_key(ascii_text(row, "url"))
        if not key or key in seen:
            tally.leave("not a project's address, or a duplicate", f"{row['id']} {ascii_text(row, 'url')}")
            continue
        seen.add(key)
        tally.ntaken += 1
        values = _values(row, public_key, tally)
        if context.writes:
            tally.nchanged += _store(key, values, ascii_text(row, "authenticator"))
    if context.writes:
        _before_move()


def _public_key(context: Context) -> signing.PublicKey | None:
    """The old site's, which will be this one's; else the one that is here."""
    installed = Path(settings.AM_SIGNING_KEY_PUBLIC)
    for path in (context.folder / _KEYS / "code_sign_public" if context.folder is not None else installed, installed):
        with suppress(OSError, UnicodeDecodeError, signing.SigningError):
            return signing.parse_public_key(path.read_text(encoding="ascii"))
    return None


def _values(row: Row, public_key: signing.PublicKey | None, tally: Tally) -> dict[str, Any]:
    url = ascii_text(row, "url")
    share = finite(row["share"], 0, MAX_SHARE * _USUAL_SHARE / _OURS)
    signature = text(row, "url_signature", tally, 2000).strip()
    if not _is_signed(url, signature, public_key):
        tally.tell("its address is not signed by this site's key: sign it before it is offered to more computers", url)
    if not ascii_text(row, "authenticator"):
        tally.tell("no account key: nobody can be attached to it", url)
    return {
        "name": line(row, "name", tally, 100) or url[:100],
        "master_url": url,
        "web_url": ascii_text(row, "web_url")[:255],
        "url_signature": signature,
        "default_share": _OURS if share is None else share * _OURS / _USUAL_SHARE,
        "is_active": row["status"] == _IN_USE,
    }


def _is_signed(url: str, signature: str, public_key: signing.PublicKey | None) -> bool:
    try:
        return public_key is not None and signing.verify(url.encode(), signature, public_key)
    except signing.SigningError:
        return False


@transaction.atomic
def _store(key: str, values: dict[str, Any], account_key: str) -> bool:
    """Add it; one that is here already gets what changed, until its operators have changed it here themselves."""
    project = Project.objects.filter(address_key=key).first()
    if project is None:
        if Project.objects.filter(name=values["name"]).exists():
            values = {**values, "name": values["master_url"][:100]}
        project = Project.objects.create(colour=Project.next_colour(), **values)
        # Its platforms and keywords are the project's own word, which is asked for soon.
        ProjectProfile.objects.create(project=project, ask_after=timezone.now())
    elif project.shared_account_key and _key_of(project) == account_key:
        return False
    if account_key:
        project.shared_account_key = account_keys.seal_shared(project, account_key)
        project.save()
    return True


def _key_of(project: Project) -> str | None:
    try:
        return account_keys.shared(project)
    except account_keys.UnreadableAccountKey:
        return None


def _before_move() -> None:
    """What stands for the projects at which work before the move was done: nobody noted at which."""
    if not Project.objects.filter(is_before_move=True).exists():
        Project.objects.create(
            name=BEFORE_MOVE,
            master_url=f"{settings.SITE_URL}before-the-move/",
            is_active=False,
            is_before_move=True,
            colour=Project.next_colour(),
        )


SIGNING_KEY: Final = CallStep("signing key", _take_key)
PROJECTS: Final = CallStep("projects", _take_projects)
