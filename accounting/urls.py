"""Addresses of the account manager: the volunteers' pages."""

from django.urls import URLPattern, URLResolver, include, path

from accounting.account_data import views as account_data_views
from accounting.computers import views as computers_views
from accounting.history import export_views, year_views
from accounting.history import views as history_views
from accounting.home import views as home_views
from accounting.joining import views as joining_views
from accounting.mails import views as mails_views
from accounting.news import views as news_views
from accounting.news.feeds import HostNoticesFeed, NoticesFeed
from accounting.own_accounts import views as own_accounts_views
from accounting.preferences import views as preferences_views
from accounting.projects import views as projects_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("notices.rss", NoticesFeed(), name="notices"),
    # BOINC's address for the same page
    path("notices.php", NoticesFeed()),
    path("notices/<int:pk>-<slug:mark>.rss", HostNoticesFeed(), name="host_notices"),
    path("news/", news_views.news, name="news"),
    path("api/v1/", include("accounting.rest.urls")),
    path("", home_views.landing, name="landing"),
    path("home/", home_views.home, name="home"),
    path("connect/", home_views.connect, name="connect"),
    path("connect/status/", home_views.connect_status, name="connect_status"),
    path("history/", history_views.history, name="history"),
    path("history/days/<str:text>/", history_views.day, name="history_day"),
    path("history/years/<int:number>/", year_views.year, name="history_year"),
    path("history/records/", year_views.records, name="history_records"),
    path("history/history.csv", export_views.download, {"kind": "csv"}, name="history_csv"),
    path("history/history.json", export_views.download, {"kind": "json"}, name="history_json"),
    path("history/files/", export_views.files, name="history_files"),
    path("history/files/make/", export_views.make, name="make_history_file"),
    path("history/files/<int:pk>.zip", export_views.download_made, name="history_file"),
    path("account/preferences/", preferences_views.preferences, name="preferences"),
    path("account/preferences/shown/", preferences_views.client_display, name="preferences_shown"),
    path("account/email-preferences/", mails_views.mail_preferences, name="mail_preferences"),
    path("mails/end/<str:token>/", mails_views.unsubscribe_here, name="unsubscribe"),
    path("account/data/", account_data_views.data, name="data"),
    path("account/data/copy/", account_data_views.make_copy, name="make_copy"),
    path("account/data/<int:pk>.zip", account_data_views.download_copy, name="download_copy"),
    path("account/delete/", account_data_views.delete_account, name="delete_account"),
    path("computers/", computers_views.computers, name="computers"),
    path("computers/change/", computers_views.computers_change, name="computers_change"),
    path("computers/joining/", joining_views.joining, name="joining"),
    path("computers/joining/request/", joining_views.request_more, name="request_more_hosts"),
    path("computers/joining/<int:pk>/revoke/", joining_views.revoke, name="revoke_join_token"),
    path("computers/<int:pk>/", computers_views.host, name="host"),
    path("computers/<int:pk>/settings/", computers_views.host_settings, name="host_settings"),
    path("computers/<int:pk>/projects/", computers_views.host_wishes, name="host_wishes"),
    path("computers/<int:pk>/retire/", computers_views.host_retire, name="host_retire"),
    path("computers/<int:pk>/unretire/", computers_views.host_unretire, name="host_unretire"),
    path("computers/<int:pk>/split/", computers_views.host_split, name="host_split"),
    path("computers/<int:pk>/merge/", computers_views.host_merge, name="host_merge"),
    path("projects/", projects_views.projects, name="projects"),
    path("projects/keywords/", projects_views.keywords, name="keywords"),
    path("projects/<int:pk>/", projects_views.project, name="project"),
    path("projects/<int:pk>/account/", own_accounts_views.own_account, name="own_account"),
]
