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
        context: dict[str, Any] = super().get_context_data(**kwargs)
        addresses = EmailAddress.objects.filter(user=self.request.user)
        context["login_address"] = addresses.filter(email=self.request.user.email).first()
        context["awaited_address"] = addresses.filter(verified=False).exclude(email=self.request.user.email).last()
        return context


change_email = login_required(ChangeEmailView.as_view())
