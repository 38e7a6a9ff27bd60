"""Addresses of the site: those of account pages; each other app has its own."""

from allauth.account.decorators import secure_admin_login
from allauth.account.views import password_set
from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from portal.clients.views import client_urls
from portal.dashboard.status import server_status, status
from portal.extras import apps_in_use
from portal.languages.scripts import script_texts
from portal.ops.health import healthz, readyz
from portal.ops.metrics import metrics
from portal.people.fresh_login import needs_fresh_login
from portal.people.pages.consent_views import consent_history
from portal.people.pages.event_views import events
from portal.people.pages.language_views import switch_language
from portal.people.pages.login_name_views import login_name
from portal.people.pages.login_token_views import login_token
from portal.people.pages.token_views import replace, revoke, tokens
from portal.people.pages.views import change_email, keys, profile, revoke_key, revoke_keys, sessions
from portal.public_pages.boinc_addresses import boinc_page
from portal.public_pages.views import enter, leave, site_text
from portal.public_pages.well_known import change_password, favicon, robots, security, sitemap, web_app_manifest
from portal.rest.problems import unknown_address

admin.autodiscover()

handler500 = "portal.web.unavailable.server_error"
urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    # Well-known addresses for browsers, search engines and security researchers
    path("favicon.ico", favicon),
    path("robots.txt", robots),
    path("sitemap.xml", sitemap, name="sitemap"),
    path("site.webmanifest", web_app_manifest, name="web_app_manifest"),
    path(".well-known/security.txt", security),
    path(".well-known/change-password", change_password),
    path("status/", status, name="status"),
    path("server_status.php", server_status, name="server_status"),
    # Two-factor login counts for operators too: the admin's own page for it leads to the site's.
    path("admin/login/", secure_admin_login(admin.site.login)),
    path("admin/", admin.site.urls),
    path("language/", switch_language, name="switch_language"),
    path("script-texts/<str:language>/<str:version>.js", script_texts, name="script_texts"),
    path("account/email/", change_email, name="account_email"),
    path("account/profile/", profile, name="profile"),
    path("account/keys/", keys, name="keys"),
    path("account/keys/<int:pk>/revoke/", revoke_key, name="revoke_key"),
    path("account/keys/revoke/", revoke_keys, name="revoke_keys"),
    path("account/tokens/", tokens, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", revoke, name="revoke_token"),
    path("account/tokens/<int:pk>/replace/", replace, name="replace_token"),
    path("account/login-token/", login_token, name="login_token"),
    path("account/user-name/", login_name, name="login_name"),
    path("account/events/", events, name="security_events"),
    path("account/consents/", consent_history, name="consents"),
    path("account/sessions/", sessions, name="sessions"),
    path("account/password/set/", needs_fresh_login()(password_set), name="account_set_password"),
    path("account/", include("allauth.urls")),
]
urlpatterns += [path(f"{page}/", site_text, {"key": page}, name=page) for page in ("about", "privacy", "terms")]
urlpatterns += [
    path("look-around/", enter, name="look_around"),
    path("look-around/leave/", leave, name="leave_look_around"),
]
urlpatterns += client_urls()
# The rooms that this installation has. The first one has the front page.
if "account_manager" in settings.ROOMS:
    urlpatterns += [path("", include("accounting.urls"))]
if "project" in settings.ROOMS:
    # Programs look for it below the project's own address.
    urlpatterns += [path("project/server_status.php", server_status)]
    urlpatterns += [path("", include("credit.urls")), path("", include("scheduler.urls"))]
if "emulator" in settings.ROOMS:
    urlpatterns += [path("emulator/", include("emulator.urls"))]
    urlpatterns += [path("api/v1/experiments/", include("emulator.rest.urls"))]
for app in apps_in_use():
    urlpatterns += app.urls()
# After the addresses of all rooms
urlpatterns += [path("api/v1/", include("portal.rest.urls")), re_path(r"^api(?:/|$)", unknown_address)]
if {"account_manager", "project"} & {*settings.ROOMS}:
    # Below the project as below the site. BOINC's Android app writes two slashes.
    urlpatterns += [re_path(r"^(?:/+)?(?:project/+)?(?P<name>\w+)\.php$", boinc_page, name="boinc_page")]
