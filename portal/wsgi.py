"""The WSGI entry point: ``granian --interface wsgi portal.wsgi:application``."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from portal import metrics_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
metrics_folder.join(settings.VAR_DIR / "metrics")
application = get_wsgi_application()
# Imports all views now: the first client need not wait for them, and a broken one ends the start.
_ = get_resolver().url_patterns
