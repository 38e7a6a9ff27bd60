"""URLs of the project server, below /project/, and the front page if there is no account manager."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.generic import RedirectView

from scheduler.blocks import rest as block_rest
from scheduler.files.views import download
from scheduler.lanes.rest import ReservedJobsView
from scheduler.lifecycle import views as lifecycle_views
from scheduler.project_preferences import views as preference_views
from scheduler.project_preferences.rest import PreferencesView
from scheduler.releases import rest as release_rest
from scheduler.releases import views as release_views
from scheduler.rpc import master_page
from scheduler.submission import draft_views, file_rest, rest
from scheduler.submission import views as submission_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("project/", master_page.master_page, name="project_page"),
    path("project/download/<str:name>", download, name="download"),
    # In folders, as on BOINC's servers
    re_path(r"^project/download/[0-9a-f]{1,8}/(?P<name>[^/]+)$", download),
    path("project/batches/", submission_views.batch_list, name="batches"),
    path("project/batches/new/", draft_views.new_batch, name="new_batch"),
    path("project/batches/drafts/<int:pk>/", draft_views.batch_draft, name="batch_draft"),
    path("project/batches/drafts/<int:pk>/submit/", draft_views.submit_draft, name="submit_draft"),
    path("project/batches/drafts/<int:pk>/discard/", draft_views.discard_draft, name="discard_draft"),
    path("project/batches/<int:pk>/", submission_views.batch_page, name="batch"),
    path("project/batches/<int:pk>/jobs/", submission_views.batch_jobs, name="batch_jobs"),
    path("project/batches/<int:pk>/jobs/cancel/", submission_views.cancel_jobs, name="cancel_jobs"),
    path("project/batches/<int:pk>/retry/", submission_views.retry_batch, name="retry_batch"),
    path("project/batches/<int:pk>/retire/", submission_views.retire_batch, name="retire_batch"),
    path("project/batches/<int:pk>/outputs.zip", submission_views.output_zip, name="output_zip"),
    path("project/batches/<int:pk>/cancel/", submission_views.cancel_batch, name="cancel_batch"),
    path("project/batches/<int:pk>/outputs/<int:output_id>/", submission_views.output, name="output"),
    path("project/preferences/", preference_views.project_preferences, name="project_preferences"),
    path("project/testing/", release_views.testing, name="testing"),
    path("tasks/archived/", lifecycle_views.archived_tasks, name="archived_tasks"),
    path("tasks/archived/<int:pk>/", lifecycle_views.archived_task, name="archived_task"),
    path("api/v1/project-preferences/", PreferencesView.as_view(), name="api_project_preferences"),
    path("api/v1/batches/", rest.BatchesView.as_view(), name="api_batches"),
    path("api/v1/batches/<int:pk>/", rest.BatchView.as_view(), name="api_batch"),
    path("api/v1/batches/<int:pk>/forecast/", rest.ForecastView.as_view(), name="api_batch_forecast"),
    path("api/v1/batches/<int:pk>/messages/", rest.JobMessagesView.as_view(), name="api_job_messages"),
    path("api/v1/batches/<int:pk>/cancel/", rest.CancelView.as_view(), name="api_cancel_batch"),
    path("api/v1/batches/<int:pk>/retire/", rest.RetireView.as_view(), name="api_retire_batch"),
    path("api/v1/batches/<int:pk>/outputs/", rest.OutputsView.as_view(), name="api_outputs"),
    path("api/v1/batches/<int:pk>/outputs/<int:output>/", rest.OutputView.as_view(), name="api_output"),
    path("api/v1/blocks/", block_rest.BlocksView.as_view(), name="api_blocks"),
    path("api/v1/blocks/<int:pk>/", block_rest.BlockView.as_view(), name="api_block"),
    path("api/v1/reserved-jobs/", ReservedJobsView.as_view(), name="api_reserved_jobs"),
    path("api/v1/app-versions/", release_rest.VersionsView.as_view(), name="api_app_versions"),
    path("api/v1/app-versions/<int:pk>/steps/", release_rest.VersionStepsView.as_view(), name="api_app_version_steps"),
    path("api/v1/app-version-drafts/", release_rest.DraftsView.as_view(), name="api_drafts"),
    path("api/v1/app-version-drafts/<int:pk>/", release_rest.DraftView.as_view(), name="api_draft"),
    path(
        "api/v1/app-version-drafts/<int:pk>/release/",
        release_rest.DraftReleaseView.as_view(),
        name="api_release_draft",
    ),
    path(
        "api/v1/app-version-drafts/<int:pk>/files/<str:name>/",
        release_rest.DraftFileView.as_view(),
        name="api_draft_file",
    ),
    path("api/v1/files/", file_rest.FilesView.as_view(), name="api_files"),
    path("api/v1/files/<str:name>/", file_rest.FileView.as_view(), name="api_file"),
]
if "account_manager" not in settings.ROOMS:
    urlpatterns += [
        path("", master_page.master_page, name="landing"),
        path("home/", RedirectView.as_view(pattern_name="project_page"), name="home"),
    ]
