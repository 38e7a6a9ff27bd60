"""Addresses of factors of versions over projects."""

from django.urls import path

from extras.central_factors.views import version_factors

urlpatterns = [path("project/version_factors.xml", version_factors, name="published_version_factors")]
