"""Addresses of validated credit: tasks, workunits, apps."""

from django.urls import path

from credit.pages import views

urlpatterns = [
    path("tasks/", views.tasks, name="tasks"),
    path("tasks/<int:pk>/", views.task, name="task"),
    path("workunits/<int:pk>/", views.workunit, name="workunit"),
    path("apps/", views.apps, name="apps"),
    path("apps/<str:name>/", views.app, name="app"),
]
