"""The API's page and description, at /api/v1/."""

from django.urls import URLPattern, path
from drf_spectacular.views import SpectacularAPIView

from portal.rest.docs import docs

urlpatterns: list[URLPattern] = [
    path("", docs, name="api_docs"),
    path("schema/", SpectacularAPIView.as_view(), name="api_schema"),
]
