"""Comments on experiments: who may write and delete them, and how many there may be."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext

from emulator.models import Comment, Experiment, Run
from emulator.runs.experiments import ExperimentRefusedError
from portal.models import User

COMMENTS_MAX: Final = 500
"""Of one experiment."""
A_DAY_MAX: Final = 50
"""Of one author, on all experiments of others and their own."""
REPEATED_WITHIN: Final = dt.timedelta(minutes=5)


def may_comment(experiment: Experiment, user: User) -> bool:
    """The owner always; others as long as the experiment is shared."""
    return experiment.started_at is not None and (experiment.owner_id == user.pk or experiment.share_token is not None)


def shown(experiment: Experiment) -> QuerySet[Comment]:
    """Those that are shown: of authors who are neither blocked nor about to be deleted."""
    return experiment.comments.filter(author__is_active=True, author__deletion_asked_at=None)


@transaction.atomic
def add(
    experiment: Experiment, author: User, text: str, run: Run | None, at_secs: float | None, now: dt.datetime
) -> Comment:
    """Add a comment. The same text again within five minutes is the same comment, so a form may be sent twice.

    Locks the author's row, then the experiment's. Raises ExperimentRefusedError when there are too many.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=author.pk)
    Experiment.objects.select_for_update(no_key=True).only("pk").get(pk=experiment.pk)
    same = Comment.objects.filter(
        experiment=experiment, author=author, run=run, at_secs=at_secs, text=text, created_at__gt=now - REPEATED_WITHIN
    ).first()
    if same is not None:
        return same
    if experiment.comments.count() >= COMMENTS_MAX:
        raise ExperimentRefusedError(
            ngettext(
                "This experiment has %(number)s comment, which is the limit.",
                "This experiment has %(number)s comments, which is the limit.",
                COMMENTS_MAX,
            )
            % {"number": COMMENTS_MAX}
        )
    if Comment.objects.filter(author=author, created_at__gt=now - dt.timedelta(days=1)).count() >= A_DAY_MAX:
        raise ExperimentRefusedError(
            gettext("You have written %(number)s comments within a day, which is the limit. Try again tomorrow.")
            % {"number": A_DAY_MAX}
        )
    return Comment.objects.create(
        experiment=experiment, author=author, run=run, at_secs=at_secs, text=text, created_at=now
    )


def may_delete(comment: Comment, user: User) -> bool:
    """Its author, the experiment's owner, and operators with the permission."""
    owners = (comment.author_id, comment.experiment.owner_id)
    return user.pk in owners or user.has_perm("emulator.delete_comment")
