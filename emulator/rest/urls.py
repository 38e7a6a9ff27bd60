"""Addresses of the emulator's REST API, below /api/v1/experiments/."""

from django.urls import URLPattern, path

from emulator.rest import views

urlpatterns: list[URLPattern] = [
    path("", views.ExperimentsView.as_view(), name="api_experiments"),
    path("<int:pk>/", views.ExperimentView.as_view(), name="api_experiment"),
    path("<int:pk>/runs/<int:number>/", views.RunView.as_view(), name="api_experiment_run"),
]
