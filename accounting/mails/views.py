"""The page where volunteers choose their mails, and the address in each mail that ends mails of its kind."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from portal.extras import site_apps
from portal.models import MAX_SILENT_DAYS, MailChoice
from portal.ops.mail_choices import Mail, mail_choice, unsubscribe
from portal.ops.mails import read_token
from portal.people.access import signed_in

# The question, and the confirmation afterwards.
_WORDS = {
    Mail.SILENCE: (
        _("You get e-mails when a computer has not synced for several days."),
        _("You no longer get e-mails when a computer has not synced for several days."),
    ),
    Mail.NO_WORK: (
        _("You get e-mails when a computer gets no work."),
        _("You no longer get e-mails when a computer gets no work."),
    ),
    Mail.FAILING_JOBS: (
        _("You get e-mails when the tasks of a computer fail."),
        _("You no longer get e-mails when the tasks of a computer fail."),
    ),
    Mail.WEEKLY_SUMMARY: (
        _("You get a weekly summary of what your computers did."),
        _("You no longer get a weekly summary of what your computers did."),
    ),
    Mail.STATUS: (
        _("You get regular e-mails about how your computers are."),
        _("You no longer get regular e-mails about how your computers are."),
    ),
    Mail.NO_COMPUTER: (
        _("You get an e-mail if no computer of yours has reported in your first week."),
        _("You get no e-mail if no computer of yours has reported in your first week."),
    ),
    Mail.LAPSED: (
        _("You get news by e-mail after your computers have been away for a long time."),
        _("You no longer get news by e-mail after your computers have been away for a long time."),
    ),
}


class MailChoiceForm(forms.ModelForm):
    """The mails that can be chosen."""

    class Meta:
        model = MailChoice
        fields = (
            *("silence", "silent_days", "no_work", "failing_jobs", "weekly_summary", "status_days", "no_computer"),
            "lapsed",
        )
        labels = {
            "silence": _("A computer that has not synced for several days"),
            "no_work": _("A computer that gets no work"),
            "failing_jobs": _("A computer whose tasks fail"),
            "weekly_summary": _("What my computers did, every Monday"),
            "status_days": _("How my computers are"),
            "no_computer": _("No computer has reported in my first week"),
            "lapsed": _("News when my computers have been away for a long time"),
        }
        help_texts = {
            "silence": _("Once each time."),
            "no_work": _("For a day or longer; at most once a week per computer."),
            "failing_jobs": _(
                "Three or more in a week, and at least a fifth of all; at most once a week per computer."
            ),
            "weekly_summary": _("Credit, run time and tasks, by project and by computer."),
            "status_days": _("What they have done since the last such mail, and which ones are silent."),
            "no_computer": _("Once, with what to check."),
            "lapsed": _("Written by the operators, a few times a year at most."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Leave out mails that no app of this site sends; the choice for them is preserved."""
        super().__init__(*args, **kwargs)
        others = {kind for app in site_apps() if not app.is_in_use for kind in app.chosen_mails()}
        for kind in others:
            del self.fields[kind]

    silent_days = forms.IntegerField(
        label=_("After how many days"),
        help_text=_("From then on, the site also shows it as silent."),
        min_value=1,
        max_value=MAX_SILENT_DAYS,
        error_messages={
            "min_value": _("Enter at least %(limit_value)s day."),
            "max_value": _("Enter at most %(limit_value)s days."),
            "invalid": _("Enter a whole number of days."),
        },
        widget=forms.NumberInput(attrs={"class": "input--short"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def mail_preferences(request: HttpRequest) -> HttpResponse:
    """Which mails do I want?"""
    choice = mail_choice(signed_in(request))
    form = MailChoiceForm(request.POST or None, instance=choice)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, gettext("Saved."))
        return redirect("mail_preferences")
    return render(request, "accounting/mail_preferences.html", {"form": form}, status=422 if form.errors else 200)


# Mail programs post here directly when their user presses "unsubscribe" (RFC 8058): no session, no form of ours. The
# signed address says what is permitted.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe_here(request: HttpRequest, token: str) -> HttpResponse:
    """End mails of one kind, signed in or not. Opening the address only shows a question: mail scanners open every
    link.
    """
    choice = read_token(token)
    if choice is None:
        raise Http404
    user_id, kind = choice
    if request.method == "POST" and not unsubscribe(user_id, kind):
        raise Http404
    question, ended = _WORDS[kind]
    context = {"question": question, "ended": ended, "is_done": request.method == "POST"}
    response = render(request, "accounting/unsubscribe.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response
