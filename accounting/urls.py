"""Addresses of the account manager: the volunteers' pages."""

from django.urls import URLPattern, URLResolver, include, path

from accounting import (
    views,
    views_computers,
    views_history,
    views_keywords,
    views_leaving,
    views_mails,
    views_preferences,
    views_projects,
)
from accounting.feeds import NoticesFeed

urlpatterns: list[URLPattern | URLResolver] = [
    path("notices.rss", NoticesFeed(), name="notices"),
    path("api/v1/", include("accounting.rest.urls")),
    path("", views.landing, name="landing"),
    path("home/", views.home, name="home"),
    path("connect/", views.connect, name="connect"),
    path("connect/status/", views.connect_status, name="connect_status"),
    path("history/", views.history, name="history"),
    path("history/days/<str:text>/", views_history.day, name="history_day"),
    path("history/history.csv", views_history.download, {"kind": "csv"}, name="history_csv"),
    path("history/history.json", views_history.download, {"kind": "json"}, name="history_json"),
    path("account/preferences/", views_preferences.preferences, name="preferences"),
    path("account/preferences/shown/", views_preferences.preferences_shown, name="preferences_shown"),
    path("account/email-preferences/", views_mails.mail_preferences, name="mail_preferences"),
    path("mails/end/<str:token>/", views_mails.unsubscribe_here, name="unsubscribe"),
    path("account/data/", views_leaving.data, name="data"),
    path("account/data/copy/", views_leaving.make_copy, name="make_copy"),
    path("account/data/<int:pk>.zip", views_leaving.download_copy, name="download_copy"),
    path("account/delete/", views_leaving.delete_account, name="delete_account"),
    path("computers/", views_computers.computers, name="computers"),
    path("computers/<int:pk>/", views_computers.host, name="host"),
    path("computers/<int:pk>/settings/", views_computers.host_settings, name="host_settings"),
    path("computers/<int:pk>/projects/", views_computers.host_wishes, name="host_wishes"),
    path("computers/<int:pk>/retire/", views_computers.host_retire, name="host_retire"),
    path("computers/<int:pk>/unretire/", views_computers.host_unretire, name="host_unretire"),
    path("computers/<int:pk>/merge/", views_computers.host_merge, name="host_merge"),
    path("projects/", views_projects.projects, name="projects"),
    path("projects/keywords/", views_keywords.keywords, name="keywords"),
    path("projects/<int:pk>/", views_projects.project, name="project"),
]
