"""The page on which people change their e-mail address."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.views import EmailView
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect


class ChangeEmailView(EmailView):
    """allauth's page, without its way of making an address the login before it is confirmed."""

    def _action_primary(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """``current_emailaddress`` is the login, ``new_emailaddress`` the one that waits for a confirmation."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        unconfirmed = EmailAddress.objects.filter(user=self.request.user, verified=False)
        awaited = unconfirmed.exclude(email=self.request.user.email).last()
        login = EmailAddress.objects.filter(user=self.request.user, email=self.request.user.email).first()
        # A login that was never confirmed waits itself, unless another address is to replace it.
        context["new_emailaddress"] = awaited or unconfirmed.filter(email=self.request.user.email).first()
        context["current_emailaddress"] = login if login != context["new_emailaddress"] else None
        return context


change_email = login_required(ChangeEmailView.as_view())
