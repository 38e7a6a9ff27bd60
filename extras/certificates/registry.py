"""Make, find, revoke and delete certificates."""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection, transaction

from accounting.ledger.sql import LOCK_MONTHS
from extras.certificates import codes
from extras.certificates.facts import CertificateRequest, Scopes, draft
from extras.certificates.models import Certificate
from portal.models import User
from portal.wire import statements

MAX_CERTIFICATES: Final = 100
"""The most of one person, including revoked ones."""


def signing_key() -> Ed25519PrivateKey:
    """Return the key that signs certificates."""
    return statements.signing_key(settings.CERTIFICATE_SECRET, "certificates")


class TooMany(Exception):
    """The person has the maximum number of certificates."""


class Verdict(StrEnum):
    """The result of checking a code."""

    VALID = "valid"
    REVOKED = "revoked"
    UNKNOWN = "unknown"
    BROKEN = "broken"
    """The signature is not this site's."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """``certificate``: only if it is valid, as others see nothing else of it."""

    verdict: Verdict
    certificate: Certificate | None = None
    revoked_on: dt.date | None = None


def issue(
    user: User, request: CertificateRequest, scopes: Scopes, now: dt.datetime, form_key: UUID | None = None
) -> Certificate:
    """Make a certificate from the ledger's present state; raises TooMany, NoWork. One transaction; locks the user's
    row, then the closing of months: a closed month must not be reopened between two reads.

    ``form_key``: of the form. If it was sent before, the certificate exists already.
    """
    code = "".join(secrets.choice(codes.ALPHABET) for _ in range(codes.CODE_LENGTH))
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        theirs = Certificate.objects.filter(user=user)
        if form_key is not None and (before := theirs.filter(form_key=form_key).first()) is not None:
            return before
        if theirs.count() >= MAX_CERTIFICATES:
            raise TooMany
        with connection.cursor() as cursor:
            cursor.execute(LOCK_MONTHS)
        statement = draft(user, request, scopes, now.astimezone(dt.UTC).date()) | {"code": code}
        signature = statements.sign(statement, signing_key())
        return Certificate.objects.create(
            user=user, code=code, statement=statement, signature=signature, made_at=now, form_key=form_key
        )


def revoke(certificate: Certificate, now: dt.datetime) -> None:
    """Revoke it: from now on the check says so, and shows nothing else. Safe to repeat; cannot be undone."""
    Certificate.objects.filter(pk=certificate.pk, revoked_at=None).update(revoked_at=now)


def delete(certificate: Certificate) -> None:
    """Delete it: the check no longer knows its code."""
    Certificate.objects.filter(pk=certificate.pk).delete()


def check(code: str) -> CheckResult:
    """Check a code, in its plain form, for a stranger. One statement.

    The certificates of an account that is being deleted, or that is blocked, are unknown.
    """
    certificate = Certificate.objects.filter(code=code, user__is_active=True, user__deletion_asked_at=None).first()
    if certificate is None:
        return CheckResult(Verdict.UNKNOWN)
    if certificate.revoked_at is not None:
        return CheckResult(Verdict.REVOKED, revoked_on=certificate.revoked_at.astimezone(dt.UTC).date())
    key = signing_key().public_key()
    is_ours = certificate.statement.get("code") == code and statements.is_signed(
        certificate.statement, certificate.signature, key
    )
    return CheckResult(Verdict.VALID, certificate) if is_ours else CheckResult(Verdict.BROKEN)


def check_address(code: str) -> str:
    """Return the address where anybody can check a code: as it is printed, and in the QR code."""
    return f"{settings.SITE_URL.rstrip('/')}/certificates/{code}/"
