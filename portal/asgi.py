"""The ASGI entry point: ``granian --interface asgi portal.asgi:application``."""

import gc
import os
import resource

import django
from django.conf import settings
from django.urls import get_resolver
from django.utils.module_loading import import_string

from portal.ops import metrics_folder

# Loaded modules stay; collecting garbage among them would waste a tenth of the start-up time.
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
metrics_folder.join(settings.VAR_DIR / "metrics")
django.setup(set_prefix=False)
# Not imported above: its imports need the metrics' folder and Django's models.
import_string("portal.ops.heartbeats.start_web")("web")
application = import_string("portal.clients.factory.make_application")()
# Imports all views now, so that the first client does not wait for them and a broken one fails the start.
_ = get_resolver().url_patterns
# Each connection is an open file, and a shell's usual limit of 1,024 is less than a process has connections.
_few_files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
# The 170,000 objects loaded by now stay. A full garbage collection needs 80 ms for them, and this process answers
# nothing meanwhile; frozen objects are skipped.
gc.collect()
gc.freeze()
gc.enable()
