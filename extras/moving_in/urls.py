"""Addresses of old mails."""

from __future__ import annotations

from django.urls import path

from extras.moving_in.views import unsubscribe_by_code

urlpatterns = [path("su_unsubscribe.php", unsubscribe_by_code)]
