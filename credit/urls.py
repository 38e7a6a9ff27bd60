"""Addresses of validated credit: tasks, workunits, apps, the laboratory."""

from django.urls import path

from credit.experiments import views as laboratory
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
    path("laboratory/", laboratory.overview, name="credit_laboratory"),
    path("laboratory/new/", laboratory.new, name="credit_experiment_new"),
    path("laboratory/<int:pk>/", laboratory.experiment, name="credit_experiment"),
    path("laboratory/<int:pk>/result.json", laboratory.result_json, name="credit_experiment_json"),
    path("laboratory/<int:pk>/share/", laboratory.share, name="credit_experiment_share"),
    path("laboratory/<int:pk>/delete/", laboratory.delete, name="credit_experiment_delete"),
    path("laboratory/shared/<str:key>/", laboratory.shared, name="credit_experiment_shared"),
    path("laboratory/shared/<str:key>/result.json", laboratory.shared_json, name="credit_experiment_shared_json"),
]
