"""Addresses of validated credit: tasks, workunits, apps."""

from django.urls import path

from credit.export import views as export
from credit.pages import views

urlpatterns = [
    path("tasks/", views.tasks, name="tasks"),
    path("tasks/<int:pk>/", views.task, name="task"),
    path("project/result.php", views.task_by_name, name="task_by_name"),
    path("workunits/<int:pk>/", views.workunit, name="workunit"),
    path("apps/", views.apps, name="apps"),
    path("apps/<str:name>/", views.app, name="app"),
    path("project/stats/", export.about, name="statistics"),
    path("project/stats/<str:name>", export.file, name="statistics_file"),
    path("project/statistics/", export.choose, name="statistics_consent"),
]
