"""Addresses of the REST API, below /api/v1/."""

from django.urls import URLPattern, path

from accounting.rest import views

urlpatterns: list[URLPattern] = [
    path("days/", views.DaysView.as_view(), name="api_days"),
    path("sums/", views.SumsView.as_view(), name="api_sums"),
    path("hosts/", views.HostsView.as_view(), name="api_hosts"),
    path("hosts/<int:pk>/", views.HostView.as_view(), name="api_host"),
    path("projects/", views.ProjectsView.as_view(), name="api_projects"),
    path("projects/<int:pk>/", views.ProjectView.as_view(), name="api_project"),
    path("notes/", views.NotesView.as_view(), name="api_notes"),
]
