"""Addresses of the scenario editor."""

from django.urls import path

from extras.scenario_editor import views

urlpatterns = [
    path("emulator/new/blank/", views.blank, name="emulate_blank"),
    path("emulator/<int:pk>/edit/", views.edit, name="experiment_edit"),
]
