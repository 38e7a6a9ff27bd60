"""Addresses of the account manager: the client protocol and the volunteers' pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
