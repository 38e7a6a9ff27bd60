"""Addresses of top lists and of teams."""

from django.urls import path

from extras.top_lists import team_views, views

urlpatterns = [
    path("project/top/", views.volunteers, name="top_volunteers"),
    path("project/top/teams/", views.teams, name="top_teams"),
    path("project/top/choice/", views.choose, name="top_lists_consent"),
    path("project/teams/", team_views.teams, name="teams"),
    path("project/teams/new/", team_views.new, name="new_team"),
    path("project/teams/<int:pk>/", team_views.team, name="team"),
    path("project/teams/<int:pk>/change/", team_views.change, name="change_team"),
]
