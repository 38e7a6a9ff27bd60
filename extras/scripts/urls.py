"""The REST API of scripts."""

from django.urls import path

from extras.scripts import rest

urlpatterns = [
    path("api/v1/scripts/", rest.ScriptsView.as_view(), name="api_scripts"),
    path("api/v1/scripts/<slug:name>/", rest.ScriptView.as_view(), name="api_script"),
    path("api/v1/scripts/<slug:name>/use/", rest.UseView.as_view(), name="api_use_script"),
]
