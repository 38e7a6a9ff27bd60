"""The project server: scheduler RPC, files, transitioner."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"
    verbose_name = "Project server"

    def ready(self) -> None:
        from credit.credit_check import archives
        from portal.hosts import merge_followers
        from portal.metrics import app_collectors
        from scheduler import merging
        from scheduler.watching import Background

        # What was granted for tasks that the purge has moved
        archives.append(
            "SELECT user_id, host_id, app_version_id, (facts->>'granted_credit')::float8 AS granted_credit,"
            " (facts->>'partial_credit')::float8 AS partial_credit FROM scheduler_archivedtask"
        )
        merge_followers.append(merging.follow)
        app_collectors.append(Background())
