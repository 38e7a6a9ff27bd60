"""What is said about an experiment: its comments, and from which experiment it was copied."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from emulator.models import COMMENT_CHARS_MAX, Comment, Experiment, Run
from emulator.pages.access import share_url
from emulator.pages.forms import PlainForm
from emulator.runs import comments
from portal.models import User
from portal.people.access import signed_in


class CommentForm(PlainForm):
    """A comment; on a run it may name the moment that it is about."""

    text = forms.CharField(
        label=_("Your comment"), max_length=COMMENT_CHARS_MAX, widget=forms.Textarea(attrs={"rows": 3})
    )
    run = forms.IntegerField(required=False, widget=forms.HiddenInput)
    day = forms.FloatField(
        label=_("Day of the run"),
        required=False,
        min_value=0,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=_("Optional: the moment you write about, such as 12.5 for noon of day 12."),
    )


def of_the_visitor(
    request: HttpRequest, found: Experiment, run: Run | None, form: CommentForm | None = None
) -> dict[str, Any]:
    """The part of a page's context about who looks at it: whether they own it, its link, and what they may say."""
    user = signed_in(request) if request.user.is_authenticated else None
    rows = list(comments.shown(found).select_related("author", "run").order_by("pk"))
    return {
        "is_owner": user is not None and found.owner_id == user.pk,
        "may_fork": user is not None and found.owner_id != user.pk,
        "share_url": share_url(found),
        "nforks": found.forks.count(),
        "comments": [(row, user is not None and _may_delete(row, found, user)) for row in rows],
        "comment_form": form or CommentForm(initial={"run": run.number if run else None}),
        "may_comment": user is not None and comments.may_comment(found, user),
    }


def _may_delete(row: Comment, found: Experiment, user: User) -> bool:
    row.experiment = found  # already read
    return comments.may_delete(row, user)
