"""The project's master page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from credit.models import App
from scheduler.files import addresses


@require_safe
def master_page(request: HttpRequest) -> HttpResponse:
    """Serve the page that clients attach to: they search it, line by line, for the scheduler's address."""
    apps = App.objects.filter(is_deprecated=False)
    context = {
        "scheduler_url": addresses.scheduler_url(),
        "project_url": settings.PROJECT_URL,
        "has_account_manager": "account_manager" in settings.ROOMS,
        "apps": apps,
    }
    return render(request, "scheduler/master_page.html", context)
