"""Settings that are the same for all sites: apps, forms, what browsers may load, the look of the admin."""

from importlib.util import find_spec

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE

# Menus list their pages in this order.
ALL_EXTRAS = [
    *("alerts", "badges", "certificates", "signature_image", "win_back_mails"),
    *("top_lists", "laboratory", "scenario_editor", "central_factors", "remote_jobs", "containers"),
    *("scripts", "moving_in"),
]
INSTALLED_APPS = [
    "portal.operators.site.SiteConfig",
    "portal.people.replaced",
    "portal.operators.site.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "auditlog",
    "portal",
    "accounting",
    "credit",
    "scheduler",
    "emulator",
    *(f"extras.{name}" for name in ALL_EXTRAS),
    # Commands for developers; a deployment has no such folder.
    *(["tools"] if find_spec("tools") else []),
]
# The first makes new ones. Hashes from a BOINC project's PHP (bcrypt) are checked, and replaced at a login.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.BCryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
ACCOUNT_FORMS = {
    "signup": "portal.people.pages.forms.SignUpForm",
    "add_email": "portal.people.pages.forms.ChangeEmailForm",
    "login": "portal.people.pages.forms.LoginForm",
    "reset_password": "portal.people.pages.forms.ResetPasswordForm",
    "reset_password_from_key": "portal.people.pages.forms.ResetPasswordKeyForm",
    "change_password": "portal.people.pages.forms.ChangePasswordForm",
    "set_password": "portal.people.pages.forms.SetPasswordForm",
    "reauthenticate": "portal.people.pages.forms.ReauthenticateForm",
}
MFA_FORMS = {
    "add_webauthn": "portal.people.pages.passkeys.AddPasskeyForm",
    "edit_webauthn": "portal.people.pages.passkeys.RenamePasskeyForm",
}
REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "portal.rest.problems.handle",
}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        # Two-factor set-up shows its QR code as a data URL.
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# The admin's templates come with inline styles, and its Alpine evaluates attributes.
ADMIN_CONTENT_SECURITY_POLICY = {
    **CONTENT_SECURITY_POLICY["DIRECTIVES"],
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}
# The site's moss green, from light to dark
ADMIN_COLORS = {
    "primary": {
        "50": "oklch(97% .015 150)",
        "100": "oklch(94% .03 150)",
        "200": "oklch(88% .055 150)",
        "300": "oklch(80% .08 150)",
        "400": "oklch(70% .1 150)",
        "500": "oklch(66% .11 150)",
        "600": "oklch(50% .1 150)",
        "700": "oklch(43% .09 150)",
        "800": "oklch(37% .075 150)",
        "900": "oklch(32% .06 150)",
        "950": "oklch(24% .05 150)",
    },
}
