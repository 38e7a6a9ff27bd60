"""The page where volunteers choose their mails, and the address in each mail that ends mails of its kind."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from portal.models import MAX_SILENT_DAYS, MailChoice
from portal.ops.mail_choices import Mail, mail_choice, unsubscribe
from portal.ops.mails import read_token
from portal.people.access import signed_in

_WORDS = {
    Mail.SILENCE: "when a computer has not reported for some days",
    Mail.NO_WORK: "when a computer gets no work",
    Mail.FAILING_JOBS: "when the jobs of a computer fail",
    Mail.WEEKLY_SUMMARY: "about what your computers did each week",
    Mail.LAPSED: "with news after your computers have been away for long",
}


class MailChoiceForm(forms.ModelForm):
    """The mails that can be chosen."""

    class Meta:
        model = MailChoice
        fields = ("silence", "silent_days", "no_work", "failing_jobs", "weekly_summary", "lapsed")
        labels = {
            "silence": "A computer has not reported for some days",
            "no_work": "A computer gets no work",
            "failing_jobs": "The jobs of a computer fail",
            "weekly_summary": "What my computers did, every Monday",
            "lapsed": "News, when my computers have been away for long",
        }
        help_texts = {
            "silence": "Once for each silence.",
            "no_work": "For a day or longer; at most once a week for each computer.",
            "failing_jobs": "Three or more in a week, and a fifth of all; at most once a week for each computer.",
            "weekly_summary": "Credit, run time and jobs, by project and by computer.",
            "lapsed": "Written by the operators; a few times a year at most.",
        }

    silent_days = forms.IntegerField(
        label="After how many days",
        help_text="From then on your pages call it silent, too.",
        min_value=1,
        max_value=MAX_SILENT_DAYS,
        error_messages={
            "min_value": "One day is the least.",
            "max_value": f"{MAX_SILENT_DAYS} days are the most.",
            "invalid": f"Enter a whole number of days, from 1 to {MAX_SILENT_DAYS}.",
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
        messages.success(request, "Saved.")
        return redirect("mail_preferences")
    return render(request, "accounting/mail_preferences.html", {"form": form}, status=422 if form.errors else 200)


# A mail program posts here by itself when its user presses "unsubscribe" (RFC 8058): no session, no form of ours. What
# it may do is in the address, which is signed.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe_here(request: HttpRequest, token: str) -> HttpResponse:
    """End mails of one kind, signed in or not. Opening the address only asks: mail scanners open every link."""
    found = read_token(token)
    if found is None:
        raise Http404
    user_id, kind = found
    if request.method == "POST" and not unsubscribe(user_id, kind):
        raise Http404
    context = {"kind": _WORDS[kind], "is_done": request.method == "POST"}
    response = render(request, "accounting/unsubscribe.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response
