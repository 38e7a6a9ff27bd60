"""Addresses of the emulator. ``key`` is an experiment's number, for its owner, or its share token, for anybody."""

from django.urls import URLPattern, URLResolver, path

from emulator.pages import documents, replay_views, run_views, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="emulator"),
    path("new/form/", views.from_form, name="emulate_form"),
    path("new/files/", views.from_files, name="emulate_files"),
    path("new/example/<slug:key>/", views.from_preset, name="emulate_preset"),
    path("new/computer/<int:pk>/", views.from_computer, name="emulate_computer"),
    path("examples/<slug:key>/", views.example, name="emulator_example"),
    path("new/json/", documents.from_json_file, name="emulate_json"),
    path("scenario.schema.json", documents.scenario_schema, name="scenario_schema"),
    path("<int:pk>/", views.experiment, name="experiment"),
    path("<int:pk>/scenario.json", documents.scenario_json, name="scenario_json"),
    path("<int:pk>/estimate/", views.estimate_runs, name="experiment_estimate"),
    path("<int:pk>/change/", views.change, name="experiment_change"),
    path("<int:pk>/cancel/", views.cancel, name="experiment_cancel"),
    path("<int:pk>/share/", views.share, name="experiment_share"),
    path("<int:pk>/delete/", views.delete, name="experiment_delete"),
    path("shared/<str:key>/", views.shared, name="experiment_shared"),
    path("shared/<str:key>/fork/", views.fork, name="experiment_fork"),
    path("<str:key>/runs/<int:number>/", run_views.run, name="emulator_run"),
    path("<str:key>/timelines/", run_views.side_by_side, name="emulator_timelines"),
    path("<str:key>/runs/<int:number>/job/", run_views.run_job, name="emulator_job"),
    path("<str:key>/runs/<int:number>/decisions/<int:decision>/", replay_views.decision, name="emulator_decision"),
    path("<str:key>/runs/<int:number>/window/", run_views.run_window, name="emulator_window"),
    path("<str:key>/runs/<int:number>/table/<slug:what>/", run_views.run_table, name="emulator_table"),
    path("<str:key>/runs/<int:number>/result.json", run_views.run_json, name="emulator_json"),
    path("<str:key>/runs/<int:number>/<slug:what>.csv", run_views.run_csv, name="emulator_csv"),
]
