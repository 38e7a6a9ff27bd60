"""The WSGI entry point: ``granian --interface wsgi portal.wsgi:application``."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from portal import metrics_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
metrics_folder.join(settings.VAR_DIR / "metrics")
application = get_wsgi_application()
