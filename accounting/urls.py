"""Addresses of the account manager: the client protocol and the volunteers' pages."""

from django.urls import URLPattern, path

from accounting import views
from accounting.api import AccountManagerView

urlpatterns: list[URLPattern] = [
    path("rpc.php", AccountManagerView.as_view(), name="rpc"),
    path("", views.landing, name="landing"),
    path("home/", views.home, name="home"),
    path("connect/", views.connect, name="connect"),
    path("connect/status/", views.connect_status, name="connect_status"),
]
