"""BOINC's addresses below the project's own, and the page of keys. Some programs write two slashes."""

from django.urls import path, re_path

from extras.remote_jobs import views

urlpatterns = [
    re_path(r"^project/+submit_rpc_handler\.php$", views.submit_rpc, name="submit_rpc"),
    re_path(r"^project/+job_file\.php$", views.job_file, name="job_file"),
    re_path(r"^project/+get_output\.php$", views.get_output, name="get_output"),
    re_path(r"^project/+get_output2\.php$", views.get_output2, name="get_output2"),
    path("project/batches/keys/", views.jobs_keys, name="jobs_keys"),
    path("project/batches/keys/<int:pk>/revoke/", views.revoke_jobs_key, name="revoke_jobs_key"),
]
