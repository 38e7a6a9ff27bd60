"""The WSGI entry point: ``granian --interface wsgi portal.wsgi:application``."""

import gc
import os

import django
from django.conf import settings
from django.urls import get_resolver
from django.utils.module_loading import import_string

from portal.ops import metrics_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
metrics_folder.join(settings.VAR_DIR / "metrics")
django.setup(set_prefix=False)
# Not imported above: its imports need the metrics' folder and Django's models.
import_string("portal.ops.heartbeats.start_web")("pages")
application = import_string("django.core.handlers.wsgi.WSGIHandler")()
# Imports all views now, so that the first client does not wait for them and a broken one fails the start.
_ = get_resolver().url_patterns
# The 170,000 objects loaded by now stay. A full garbage collection needs 80 ms for them, and this process answers
# nothing meanwhile; frozen objects are skipped.
gc.collect()
gc.freeze()
