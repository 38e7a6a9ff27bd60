"""Addresses of badges."""

from django.urls import path

from extras.badges.views import badges

urlpatterns = [path("history/badges/", badges, name="history_badges")]
