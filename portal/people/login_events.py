"""What happens at a login on the web: a deletion that was asked for is cancelled."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from portal.models import User
from portal.people.deletion import cancel_deletion


@receiver(user_logged_in)
def _cancel_deletion(request: HttpRequest, user: User, **_: Any) -> None:
    if cancel_deletion(user):
        messages.success(request, "Welcome back. Your account will not be deleted.", fail_silently=True)
