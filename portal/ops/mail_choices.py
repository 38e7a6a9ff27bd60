"""The optional mails that a volunteer wants, and those already sent, so that none is sent twice."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from django.db import transaction
from django.utils import timezone

from portal.models import MailChoice, SentMail, User


class Mail(StrEnum):
    """The kinds of mail that can be chosen; each has the name of its column of `MailChoice`."""

    SILENCE = "silence"
    NO_WORK = "no_work"
    FAILING_JOBS = "failing_jobs"
    WEEKLY_SUMMARY = "weekly_summary"
    STATUS = "status_days"
    NO_COMPUTER = "no_computer"
    LAPSED = "lapsed"


# After this long nothing can recur: a week or a silence that began earlier is no longer mailed about.
SENT_KEPT: Final = dt.timedelta(days=400)


def mail_choice(user: User) -> MailChoice:
    """The user's choices, or the defaults."""
    return MailChoice.objects.filter(user=user).first() or MailChoice(user=user)


def silent_after(user: User) -> dt.timedelta:
    """How long a computer has to be without a report to count as silent."""
    return dt.timedelta(days=mail_choice(user).silent_days)


def unsubscribe(user_id: int, kind: Mail) -> bool:
    """Stop sending mails of this kind; False if there is no such account. Safe to repeat."""
    if not User.objects.filter(pk=user_id).exists():
        return False
    MailChoice.objects.update_or_create(user_id=user_id, defaults={kind.value: False})
    return True


def claim(user: User, kind: Mail, keys: Collection[str]) -> list[str]:
    """Claim the subjects that the user was not mailed about yet, and return their keys; they then count as mailed.

    A task that dies after this sends nothing: no mail is better than the same one every hour.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        already_told = set(SentMail.objects.filter(user=user, kind=kind, key__in=keys).values_list("key", flat=True))
        new = [key for key in dict.fromkeys(keys) if key not in already_told]
        SentMail.objects.bulk_create(SentMail(user=user, kind=kind, key=key, sent_at=timezone.now()) for key in new)
    return new


def release(user: User, kind: Mail, keys: Collection[str]) -> None:
    """Undo `claim` for a mail that could not be handed to the mail server: the next run tries again."""
    SentMail.objects.filter(user=user, kind=kind, key__in=keys).delete()


def delete_old() -> int:
    """Delete records of mails sent more than SENT_KEPT ago; return how many there were."""
    return SentMail.objects.filter(sent_at__lt=timezone.now() - SENT_KEPT).delete()[0]
