"""URLs of credit: tasks, workunits, apps."""

from django.urls import path

from credit.export import views as export
from credit.pages import rest, views

urlpatterns = [
    path("tasks/", views.tasks, name="tasks"),
    path("tasks/<int:pk>/", views.task, name="task"),
    path("project/result.php", views.task_by_name, name="task_by_name"),
    path("workunits/<int:pk>/", views.workunit, name="workunit"),
    path("apps/", views.apps, name="apps"),
    path("apps/<str:name>/", views.app, name="app"),
    path("project/stats/", export.about, name="statistics"),
    path("project/stats/<str:name>", export.file, name="statistics_file"),
    path("api/v1/tasks/", rest.TasksView.as_view(), name="api_tasks"),
    path("api/v1/tasks/<int:pk>/", rest.TaskView.as_view(), name="api_task"),
    path("project/statistics/", export.choose, name="statistics_consent"),
]
