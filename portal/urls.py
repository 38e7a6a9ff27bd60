"""Addresses of the site: people's pages here, the account manager's in accounting.urls."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("account/", include("allauth.urls")),
    path("", include("accounting.urls")),
]
