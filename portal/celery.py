"""The Celery application: ``celery -A portal worker`` and ``celery -A portal beat``."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("cobblestone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
