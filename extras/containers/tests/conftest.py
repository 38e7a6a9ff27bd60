"""The scheduler's folders and keys, an app whose programs run in containers, and a submitter of jobs."""

from __future__ import annotations

import pytest
from django.test import Client

from credit.models import App
from portal.models import User
from scheduler.models import PlanClass
from tests.scheduler.conftest import code_key_folder, project_folders
from tests.support.credit_factories import make_app, make_version

__all__ = ["code_key_folder", "project_folders"]
LINUX, MAC = "x86_64-pc-linux-gnu", "arm64-apple-darwin"


@pytest.fixture
def app(db: None) -> App:
    """docker_wrapper for two platforms, and on one of them also for GPUs."""
    app = make_app(name="docker", adaptive_replication=True)
    PlanClass.objects.create(name="docker", needs_docker=True)
    PlanClass.objects.create(
        name="docker_nvidia", needs_docker=True, processor_type="NVIDIA", gpu_usage=1, avg_ncpus=0.1
    )
    for platform in (LINUX, MAC):
        make_version(app, platform=platform, plan_class="docker")
    make_version(app, platform=LINUX, plan_class="docker_nvidia", processor_type="NVIDIA", gpu_usage=1)
    return app


@pytest.fixture
def browser(client: Client, submitter: User) -> Client:
    client.force_login(submitter)
    return client
