"""Addresses of the site: people's pages here, the account manager's in accounting.urls."""

from django.contrib import admin
from django.urls import include, path

from portal.email_views import change_email
from portal.health import healthz, readyz
from portal.metrics import metrics
from portal.token_views import revoke, tokens
from portal.views import keys, revoke_key, revoke_keys

urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("admin/", admin.site.urls),
    path("account/email/", change_email, name="account_email"),
    path("account/keys/", keys, name="keys"),
    path("account/keys/<int:pk>/revoke/", revoke_key, name="revoke_key"),
    path("account/keys/revoke/", revoke_keys, name="revoke_keys"),
    path("account/tokens/", tokens, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", revoke, name="revoke_token"),
    path("account/", include("allauth.urls")),
    path("", include("accounting.urls")),
    path("", include("credit.urls")),
    path("", include("scheduler.urls")),
    path("emulator/", include("emulator.urls")),
]
