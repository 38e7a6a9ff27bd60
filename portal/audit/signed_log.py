"""A log that cannot be changed unnoticed: releases, changes of the code-signing key, and addresses of projects.

Each entry is signed with a key of the site and names the digest of the one before. So an entry that is changed, removed
or inserted is noticed, also in an exported copy (`check_signed_log`). The site could sign its own forgery, and entries
cut off at the end leave no gap: only copies kept elsewhere show that, or the number and digest of the last entry, which
are also written to the site's ordinary log.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.audit.who import person_now
from portal.extras import site_apps
from portal.maintenance.jobs import Job
from portal.models import Change, SignedEntry
from portal.wire import statements
from portal.wire.statements import Statement

log = structlog.get_logger("signed_log")
TOLD_DIGITS: Final = 16
"""How much of a digest the site's ordinary log shows: it hides anything as long as a key."""


@transaction.atomic
def append(kind: SignedEntry.Kind, content: Statement, now: dt.datetime | None = None) -> SignedEntry:
    """Add an entry in the name of the person making changes. Locks the log (see `SignedEntry.lock`)."""
    SignedEntry.lock()
    last = SignedEntry.objects.first()
    person = person_now()
    entry = SignedEntry(
        number=last.number + 1 if last is not None else 1,
        at=now or timezone.now(),
        kind=kind,
        person=person.pk if person is not None else 0,
        content=content,
        previous=last.digest if last is not None else "",
    )
    statement = statement_of(entry)
    entry.digest = _digest(statement)
    entry.signature = statements.sign(statement, _key())
    entry.save(force_insert=True)
    # The ordinary log is kept elsewhere, too, and so shows entries that were cut off here.
    transaction.on_commit(lambda: log.info("signed_log_entry", number=entry.number, digest=entry.digest[:TOLD_DIGITS]))
    return entry


def statement_of(entry: SignedEntry) -> Statement:
    """The statement that is signed."""
    return {
        "number": entry.number,
        "at": entry.at.astimezone(dt.UTC).isoformat(),
        "kind": str(entry.kind),
        "person": entry.person,
        "content": entry.content,
        "previous": entry.previous,
    }


def _digest(statement: Statement) -> str:
    return hashlib.sha256(statements.canonical(statement)).hexdigest()


def _key() -> Ed25519PrivateKey:
    return statements.signing_key(settings.CERTIFICATE_SECRET, "signed log")


def public_key_text() -> str:
    """The key that signs entries, as PEM."""
    return statements.public_key_text(_key())


def lock_for(model: type[Model]) -> None:
    """Lock the log first, if the table's changes go into it; call it in a transaction that may change a row."""
    if _signed(model):
        SignedEntry.lock()


def lock_before_deletion(sender: type[Model], **_: Any) -> None:
    """Lock the log before rows are deleted, with those that go with them."""
    lock_for(sender)


def _signed(model: type[Model] | None) -> list[str]:
    return [name for app in site_apps() for table in app.audited() if table.model is model for name in table.signed]


def take_change(sender: type[Change], instance: Change, created: bool, **_: Any) -> None:
    """Append a recorded change of settings if any of its fields is signed."""
    model = instance.content_type.model_class()
    changes: Mapping[str, Any] = instance.changes or {}
    signed_changes = {name: changes[name] for name in _signed(model) if name in changes}
    if not created or not signed_changes:
        return
    content: Statement = {"row": f"{instance.content_type.model} {instance.object_pk}", "name": instance.object_repr}
    for name, (before, after) in signed_changes.items():
        content[name] = {"before": str(before or ""), "after": str(after or "")}
    append(SignedEntry.Kind.ADDRESS, content)


def export() -> Iterator[str]:
    """Yield the log from its first entry, one line of JSON each."""
    for entry in SignedEntry.objects.order_by("number").iterator():
        yield json.dumps(exported(entry), ensure_ascii=False) + "\n"


def exported(entry: SignedEntry) -> dict[str, Any]:
    """An entry's statement with its signature."""
    return {"statement": statement_of(entry), "signature": entry.signature}


def summary(entry: SignedEntry) -> str:
    """Describe an entry in a line: the version and its action, the beginnings of the keys' digests, or the address."""
    content = entry.content
    if entry.kind == SignedEntry.Kind.RELEASE:
        return f"{content.get('version')}: {content.get('action')}"
    if entry.kind == SignedEntry.Kind.KEY:
        before, after = (str(content.get(name, "")).encode() for name in ("old_key", "new_key"))
        return f"{hashlib.sha256(before).hexdigest()[:16]} → {hashlib.sha256(after).hexdigest()[:16]}"
    address = content.get("master_url") or {}
    words = f"{address.get('before') or '–'} → {address.get('after') or '–'}" if address else "url_signature"
    return f"{content.get('name')}: {words}"


def differences() -> Iterator[str]:
    """Yield a sentence for each entry that was changed, or does not follow the one before."""
    key, previous, expected = _key().public_key(), "", 1
    for entry in SignedEntry.objects.order_by("number").iterator():
        if entry.number != expected:
            yield f"entry {entry.number}: entry {expected} is expected here"
        if entry.previous != previous:
            yield f"entry {entry.number}: it does not follow the entry before it"
        statement = statement_of(entry)
        if entry.digest != _digest(statement) or not statements.is_signed(statement, entry.signature, key):
            yield f"entry {entry.number}: it was changed, or is not signed by this site"
        previous, expected = entry.digest, entry.number + 1


def differences_from_last(number: int, digits: str) -> Iterator[str]:
    """Yield a sentence if the log has no entry with this number and first digits of the digest (see the ordinary log).

    Raises ValueError if there are too few digits to compare.
    """
    if len(digits) < TOLD_DIGITS:
        raise ValueError(f"give at least {TOLD_DIGITS} digits of the digest")
    if not SignedEntry.objects.filter(number=number, digest__startswith=digits).exists():
        yield f"entry {number}: the one with the digest {digits}… is missing"


def differences_from(lines: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each entry of an exported copy that differs from the log. ValueError if it is no copy."""
    for number, line in enumerate(lines, 1):
        try:
            statement, signature = json.loads(line)["statement"], json.loads(line)["signature"]
            entry = SignedEntry.objects.filter(number=int(statement["number"])).first()
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"line {number} is not an entry of a signed log: {error}") from error
        if entry is None or statement_of(entry) != statement or entry.signature != signature:
            yield f"entry {statement['number']}: the copy differs"


SIGNED_LOG: Final = Job(
    "check_signed_log",
    _("Signed log"),
    _("Checks that no entry of the log of releases, keys and addresses was changed or removed."),
    differences,
)
