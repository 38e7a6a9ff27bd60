"""Addresses of the credit laboratory."""

from django.urls import path

from extras.laboratory import views

urlpatterns = [
    path("laboratory/", views.overview, name="credit_laboratory"),
    path("laboratory/new/", views.new, name="credit_experiment_new"),
    path("laboratory/<int:pk>/", views.experiment, name="credit_experiment"),
    path("laboratory/<int:pk>/result.json", views.result_json, name="credit_experiment_json"),
    path("laboratory/<int:pk>/share/", views.share, name="credit_experiment_share"),
    path("laboratory/<int:pk>/delete/", views.delete, name="credit_experiment_delete"),
    path("laboratory/shared/<str:key>/", views.shared, name="credit_experiment_shared"),
    path("laboratory/shared/<str:key>/result.json", views.shared_json, name="credit_experiment_shared_json"),
]
