"""The page on which people change their display name."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in

MAX_NAME_CHARS = 100
NAME_HELP = (
    "What this site and your BOINC clients call you; nobody else sees it. Without one it is the part of your e-mail"
    " address before the @."
)


class ProfileForm(forms.Form):
    """The display name."""

    name = forms.CharField(
        label="Display name",
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=NAME_HELP,
        widget=forms.TextInput(attrs={"autocomplete": "nickname"}),
    )

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).split())
        if not name.isprintable():
            raise forms.ValidationError("The name has a character that cannot be shown. Leave it out.")
        return name


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    """What am I called?"""
    user = signed_in(request)
    form = ProfileForm(request.POST if request.method == "POST" else None, initial={"name": user.name})
    if request.method == "POST" and form.is_valid():
        user.name = form.cleaned_data["name"]
        user.save(update_fields=["name"])
        messages.success(
            request,
            f"Saved. You are called {user.display_name}; your BOINC clients learn of it at their next contact.",
        )
        return redirect("profile")
    return render(request, "portal/profile.html", {"form": form}, status=422 if form.errors else 200)
