"""The project server's application, and what it adds to others when it starts."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"
    verbose_name = "Project server"

    def ready(self) -> None:
        from credit.statistics.check import archives
        from portal.computers.host_changes import merge_followers
        from portal.ops.metrics import app_collectors
        from scheduler.lifecycle import host_merge
        from scheduler.lifecycle.metrics import Background

        # What was granted for tasks that the purge has moved
        archives.append(
            "SELECT user_id, host_id, app_version_id, (facts->>'granted_credit')::float8 AS granted_credit,"
            " (facts->>'partial_credit')::float8 AS partial_credit FROM scheduler_archivedtask"
        )
        merge_followers.append(host_merge.follow)
        app_collectors.append(Background())
