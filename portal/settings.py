"""All settings of the site, read from the environment; docs/reference/settings.md explains each.

Long settings that are the same for all sites are in `portal.fixed_settings`.
"""

from __future__ import annotations

import datetime as dt
import secrets
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.templatetags.static import static

from portal import environment as env
from portal.clients.site_paths import paths_of
from portal.fixed_settings import ACCOUNT_FORMS as ACCOUNT_FORMS
from portal.fixed_settings import ADMIN_COLORS as ADMIN_COLORS
from portal.fixed_settings import ADMIN_CONTENT_SECURITY_POLICY as ADMIN_CONTENT_SECURITY_POLICY
from portal.fixed_settings import ALL_EXTRAS
from portal.fixed_settings import AUTH_PASSWORD_VALIDATORS as AUTH_PASSWORD_VALIDATORS
from portal.fixed_settings import CONTENT_SECURITY_POLICY as CONTENT_SECURITY_POLICY
from portal.fixed_settings import INSTALLED_APPS as INSTALLED_APPS
from portal.fixed_settings import MFA_FORMS as MFA_FORMS
from portal.fixed_settings import PASSWORD_HASHERS as PASSWORD_HASHERS
from portal.fixed_settings import REST_FRAMEWORK as REST_FRAMEWORK
from portal.languages.sources import APPS as catalogue_apps
from portal.object_storage import options as object_storage
from portal.periodic.timetable import timetable
from portal.rest import VERSION as REST_API_VERSION
from portal.wire import web_push
from portal.wire.key_files import make_file

BASE_DIR = Path(__file__).resolve().parent.parent
THEME_DIR = Path(str(files("unfold")))

VAR_DIR = Path(env.text("VAR_DIR", str(BASE_DIR / "var"))).resolve()
DEBUG = env.switch("DEBUG", False)

# --- the site -----------------------------------------------------------------------------------
SITE_NAME = env.text("SITE_NAME", "Cobblestone")
PORT = env.integer("PORT", 8000, low=1, high=65535)
# The master URL that clients attach to, in its canonical form: with a dot in the host and a slash at the end.
SITE_URL = env.text("SITE_URL", f"http://127.0.0.1:{PORT}/")
HTTPS = SITE_URL.startswith("https://")
# A site on one's own machine answers to all of its names, a public one only to its own.
_HOST, _OWN_MACHINE = urlsplit(SITE_URL).hostname or "", ["127.0.0.1", "localhost"]
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", _OWN_MACHINE if _HOST in _OWN_MACHINE else [_HOST])
CSRF_TRUSTED_ORIGINS = [SITE_URL.rstrip("/")]
# New accounts on the web and, separately, from the BOINC Manager (create_account.php).
SIGNUP_OPEN = env.switch("SIGNUP_OPEN", True)
CLIENT_SIGNUP_OPEN = env.switch("CLIENT_SIGNUP_OPEN", True)
# Whether people may also log in by a user name, which BOINC's Manager then asks for.
LOGIN_BY_USER_NAME = env.switch("LOGIN_BY_USER_NAME", False)
# Whether account keys at projects are handed out only after the person has confirmed their address.
CONFIRMED_EMAIL_FOR_PROJECTS = env.switch("CONFIRMED_EMAIL_FOR_PROJECTS", False)
# Shown before sign-up, which then needs consent; empty: there are none.
TERMS_OF_USE = env.text("TERMS_OF_USE")
# The e-mail address of the account that visitors may look around in; empty: none.
DEMO_ACCOUNT = env.text("DEMO_ACCOUNT").lower()
# The community's place elsewhere: a link on every page; empty: none.
COMMUNITY_URL = "".join(env.addresses("COMMUNITY_URL", most=1))
# How to reach the operators: a link to an e-mail address or a page; empty: no contact is given.
CONTACT_LINK = env.contact("CONTACT")
CONTACT = CONTACT_LINK.removeprefix("mailto:")
# The parts of the site that this installation has.
ROOMS = env.words_among("ROOMS", ["account_manager", "project", "emulator"])
# The optional parts of the site that are in use; "none" for none of them.
EXTRAS = env.words_among("EXTRAS", ALL_EXTRAS, may_be_none=True)

# --- the account manager --------------------------------------------------------------------------
AM_REPEAT_SECS = env.integer("AM_REPEAT_SECS", 6 * 3600, low=30, high=14 * 86400)
AM_REPEAT_SECS_AFTER_ATTACH = env.integer("AM_REPEAT_SECS_AFTER_ATTACH", 120, low=30, high=14 * 86400)
# The tasks that clients are asked to list at each contact: started ones, all, or none.
AM_TASKS = env.choice("AM_TASKS", "active", ["active", "all", "off"])
# An address that clients report for a project counts once computers of this many owners report it; 0: never.
AM_ADDRESS_OWNERS = env.integer("AM_ADDRESS_OWNERS", 3, low=0, high=1000)
# The private key (BOINC's text or PEM) may be kept elsewhere: signatures are then pasted in the admin.
AM_SIGNING_KEY = Path(env.text("AM_SIGNING_KEY", str(VAR_DIR / "keys" / "am_signing_private")))
AM_SIGNING_KEY_PUBLIC = Path(env.text("AM_SIGNING_KEY_PUBLIC", str(VAR_DIR / "keys" / "am_signing_public")))
# The most that a computer may claim (docs/explanation/accounting.md). Even with the highest values of these settings,
# the allowance of thirty days in micro-credits fits a bigint.
AM_MAX_NCPUS = env.integer("AM_MAX_NCPUS", 1024, low=1, high=100_000)
AM_MAX_CPU_FLOPS = env.number("AM_MAX_CPU_FLOPS", 200e9, low=1e6, high=1e13)
AM_MAX_GPUS = env.integer("AM_MAX_GPUS", 64, low=0, high=1000)
AM_MAX_GPU_FLOPS = env.number("AM_MAX_GPU_FLOPS", 500e12, low=1e6, high=5e15)
# A speed that differs by more than this factor from the usual one of the processor's model is not believed.
AM_MODEL_FACTOR = env.number("AM_MODEL_FACTOR", 4, low=1.5, high=1000)
# The usual speed is taken from the computers of at least this many owners.
AM_MODEL_OWNERS = env.integer("AM_MODEL_OWNERS", 5, low=3, high=10_000)
# Failed logins by the client protocols, per account and per address, within the window.
CLIENT_LOGIN_FAILURES = env.integer("CLIENT_LOGIN_FAILURES", 10, low=1, high=1_000_000)
CLIENT_LOGIN_FAILURE_WINDOW_SECS = env.integer("CLIENT_LOGIN_FAILURE_WINDOW_SECS", 600, low=1, high=7 * 86400)
# Password checks by the client protocols, right or wrong, per address: each costs a slow hash.
CLIENT_PASSWORD_CHECKS_PER_MINUTE = env.integer("CLIENT_PASSWORD_CHECKS_PER_MINUTE", 60, low=1, high=1_000_000)
# Computers that an account may add within 24 hours, by either protocol; operators can give an account another limit.
NEW_HOSTS_PER_DAY = env.integer("NEW_HOSTS_PER_DAY", 20, low=1, high=100_000)
# The number of computers for which an account may make join tokens within 30 days.
JOIN_TOKEN_HOSTS = env.integer("JOIN_TOKEN_HOSTS", 300, low=0, high=100_000)
# Limits of an account's computers, merged and retired ones included; of live keys of each; of keys that no client uses.
HOSTS_PER_ACCOUNT = env.integer("HOSTS_PER_ACCOUNT", 5000, low=1, high=100_000)
KEYS_PER_HOST = env.integer("KEYS_PER_HOST", 20, low=2, high=1000)
UNUSED_KEYS_PER_ACCOUNT = env.integer("UNUSED_KEYS_PER_ACCOUNT", 200, low=1, high=10_000)
# How long after their last use replaced keys and those of retired computers end.
KEYS_KEPT_DAYS = env.integer("KEYS_KEPT_DAYS", 180, low=30, high=3650)

# Win-back mails: the most a day, and the most a person gets in a year.
LAPSED_MAILS_PER_DAY = env.integer("LAPSED_MAILS_PER_DAY", 500, low=1, high=1_000_000)
LAPSED_MAILS_PER_YEAR = env.integer("LAPSED_MAILS_PER_YEAR", 2, low=1, high=52)

# Channels that a volunteer may have for alerts, and messages to each of them within 24 hours; those about the account
# are counted separately.
ALERT_CHANNELS_MAX = env.integer("ALERT_CHANNELS_MAX", 10, low=0, high=100)
ALERTS_PER_CHANNEL_DAY = env.integer("ALERTS_PER_CHANNEL_DAY", 50, low=1, high=1000)
SECURITY_ALERTS_PER_CHANNEL_DAY = env.integer("SECURITY_ALERTS_PER_CHANNEL_DAY", 200, low=10, high=10_000)

# --- the project server ---------------------------------------------------------------------------
# Not the account manager's own address: a client takes an address for one or the other (docs/explanation/scheduler.md).
# Exception: if the project was at another path of this host before it moved here, clients keep that one.
FORMER_PATHS = env.former_paths("FORMER_PATHS")
if "/" in FORMER_PATHS and "account_manager" in ROOMS:
    env.refuse(
        "FORMER_PATHS", "/", "clients take the site's own address for its account manager; leave that out of ROOMS"
    )
PROJECT_URL = f"{SITE_URL}{next((path for path in FORMER_PATHS if path.endswith('/')), '/project/').removeprefix('/')}"
# Jobs that a computer may have at once for each processor, and for each GPU.
MAX_JOBS_IN_PROGRESS = env.integer("MAX_JOBS_IN_PROGRESS", 20, low=1, high=10_000)
MAX_GPU_JOBS_IN_PROGRESS = env.integer("MAX_GPU_JOBS_IN_PROGRESS", 20, low=0, high=10_000)
MAX_JOBS_PER_RPC = env.integer("MAX_JOBS_PER_RPC", 20, low=1, high=500)
# Above this share of its daily jobs, those that a computer returns undone count twice in its daily quota.
MAX_UNDONE_SHARE = env.number("MAX_UNDONE_SHARE", 0.2, low=0, high=1)
# Whether copies of a workunit are kept from accounts that may belong to one person (docs/explanation/scheduler.md).
SEPARATE_REPLICAS = env.choice("SEPARATE_REPLICAS", "prefer", ["strict", "prefer", "off"])
# Servers from which computers may be told to fetch inputs of jobs: hosts, *.example.org, or * for all.
REMOTE_INPUT_HOSTS = env.words("REMOTE_INPUT_HOSTS", [])
# The largest input that can be uploaded over the REST API, and the total that one person may have uploaded there.
INPUT_FILE_MAX_BYTES = env.integer("INPUT_FILE_MAX_BYTES", 1 << 40, low=1, high=1 << 40)
INPUT_FILES_MAX_BYTES = env.integer("INPUT_FILES_MAX_BYTES", 1 << 42, low=1, high=1 << 50)
# Signs programs; the private key may be kept elsewhere: signatures are then made there (docs/how-to/jobs.md).
CODE_SIGNING_KEY = Path(env.text("CODE_SIGNING_KEY", str(VAR_DIR / "keys" / "code_signing_private")))
CODE_SIGNING_KEY_PUBLIC = Path(env.text("CODE_SIGNING_KEY_PUBLIC", str(VAR_DIR / "keys" / "code_signing_public")))
# Output files that are being uploaded: on this server's own disk.
UPLOADS_DIR = Path(env.text("UPLOADS_DIR", str(VAR_DIR / "uploads")))
# Unfinished uploads that have received nothing for this long are removed. BOINC's clients give up after 14 days.
UPLOADS_KEPT_DAYS = env.integer("UPLOADS_KEPT_DAYS", 15, low=1, high=365)
# After this many days finished jobs go to the archive, without their stderr output.
JOBS_KEPT_DAYS = env.integer("JOBS_KEPT_DAYS", 30, low=0, high=3650)
# The internal location of nginx that has the folder of stored files; empty: the site sends them itself.
DOWNLOAD_ACCEL_PREFIX = env.text("DOWNLOAD_ACCEL_PREFIX")
# How files in object storage reach those who may have them: by a temporary address there, or through the site.
FILES_S3_DOWNLOADS = env.choice("FILES_S3_DOWNLOADS", "presigned", ["presigned", "site"])
FILES_S3_URL_SECS = env.integer("FILES_S3_URL_SECS", 3600, low=60, high=7 * 86_400)
# Minimum delay between scheduler requests, unless the computer's owner asks for one.
SCHEDULER_REQUEST_DELAY_SECS = env.integer("SCHEDULER_REQUEST_DELAY_SECS", 10, low=0, high=86_400)
# A computer that asks for jobs again sooner gets none; what it reports is taken.
MIN_SENDWORK_INTERVAL_SECS = env.integer("MIN_SENDWORK_INTERVAL_SECS", 6, low=0, high=86_400)
# The lowest and highest version of BOINC's client that gets jobs (empty: any), and from when the lowest applies.
MIN_CLIENT_VERSION = env.client_version("MIN_CLIENT_VERSION")
MAX_CLIENT_VERSION = env.client_version("MAX_CLIENT_VERSION")
MIN_CLIENT_VERSION_FROM = env.day("MIN_CLIENT_VERSION_FROM")
# Jobs are given up this long after the deadline that clients are told.
REPORT_GRACE_SECS = env.integer("REPORT_GRACE_SECS", 0, low=0, high=90 * 86_400)
# Bytes of trickle-up messages accepted for a job within 24 hours; the rest is dropped.
TRICKLE_BYTES_PER_JOB_DAY = env.integer("TRICKLE_BYTES_PER_JOB_DAY", 1024**2, low=1000, high=1024**3)
# Clients ask again after at most this long, even if they need nothing, to learn of cancelled jobs. 0: never.
SCHEDULER_NEXT_RPC_SECS = env.integer("SCHEDULER_NEXT_RPC_SECS", 86_400, low=0, high=30 * 86_400)

# How often beat checks for late or reported results and, at a third of that rate, for finished workunits.
TRANSITIONER_EVERY_SECS = env.integer("TRANSITIONER_EVERY_SECS", 5, low=1, high=3600)
# Workunits that a validator decides in one transaction; fewer if it has to read their output files.
VALIDATOR_BATCH = env.integer("VALIDATOR_BATCH", 5000, low=1, high=20_000)
VALIDATOR_FILES_BATCH = env.integer("VALIDATOR_FILES_BATCH", 100, low=1, high=20_000)
# How often beat checks for work for validators, and how long a validator runs before it yields to other tasks.
VALIDATOR_EVERY_SECS = env.integer("VALIDATOR_EVERY_SECS", 5, low=1, high=3600)
VALIDATOR_RUN_SECS = env.integer("VALIDATOR_RUN_SECS", 60, low=1, high=600)
# A pair of volunteers whose agreement has a lower probability by chance than this needs a third one to confirm it.
PAIR_CHANCE = env.number("PAIR_CHANCE", 1e-6, low=0, high=0.01)
# How long a workunit of such a pair waits for a third volunteer.
PAIR_WAIT = dt.timedelta(days=env.integer("PAIR_WAIT_DAYS", 14, low=1, high=365))
# Validators that may work on one app at the same time.
VALIDATORS_PER_APP = env.integer("VALIDATORS_PER_APP", 1, low=1, high=64)
# Apps whose validators have a separate queue, validator.<short name of the app>: start workers for them.
VALIDATOR_QUEUES = env.words("VALIDATOR_QUEUES", [])
# A folder with a subfolder for each script of the project, which sees it as /data; empty: none.
SCRIPT_DATA_DIR = env.text("SCRIPT_DATA_DIR")
# Granted workunits of each app whose facts are kept for operators to replay under other settings.
PREVIEW_WORKUNITS = env.integer("PREVIEW_WORKUNITS", 20_000, low=100, high=1_000_000)
# Whether volunteers may use the credit laboratory, and anyone with a link may read its results; and the processor time
# of an experiment.
CREDIT_LABORATORY_PUBLIC = env.switch("CREDIT_LABORATORY_PUBLIC", False)
CREDIT_LABORATORY_SECS_MAX = env.integer("CREDIT_LABORATORY_SECS_MAX", 600, low=1, high=800)

# How often the project's statistics are exported.
STATISTICS_EXPORT_EVERY_SECS = env.integer("STATISTICS_EXPORT_EVERY_SECS", 86_400, low=600, high=7 * 86_400)

# Version factors across projects: the projects whose exports this site averages as a central server, and the central
# server whose averages it uses.
CENTRAL_PROJECTS = env.addresses("CENTRAL_PROJECTS", most=100)
CENTRAL_SERVER = "".join(env.addresses("CENTRAL_SERVER", most=1))
# Importing projects' statistics: how often each is asked, where files are kept meanwhile, and the largest one.
STATISTICS_IMPORT_EVERY_SECS = env.integer("STATISTICS_IMPORT_EVERY_SECS", 21_600, low=600, high=7 * 86_400)
STATISTICS_IMPORT_DIR = Path(env.text("STATISTICS_IMPORT_DIR", str(VAR_DIR / "statistics_import")))
# The share of an export's records that may be implausible before all of it is refused.
STATISTICS_IMPORT_ODD_PERCENT = env.number("STATISTICS_IMPORT_ODD_PERCENT", 1, low=0, high=100)
STATISTICS_IMPORT_MAX_BYTES = env.integer("STATISTICS_IMPORT_MAX_BYTES", 4 << 30, low=1 << 20, high=1 << 40)

# The project's number in BOINC's list of projects, by which a freshly installed client finds it. 0: not in it.
BOINC_LIST_ID = env.integer("BOINC_LIST_ID", 0, low=0, high=2**31 - 1)

# Requests to the project's web RPCs, per address.
WEB_RPCS_PER_MINUTE = env.integer("WEB_RPCS_PER_MINUTE", 300, low=1, high=1_000_000)

# Python functions that apps may name, by their dotted names: the admin offers a choice of them.
APP_FUNCTIONS = env.words("APP_FUNCTIONS", [])

# Requests to the REST API, per volunteer.
API_REQUESTS_PER_MINUTE = env.integer("API_REQUESTS_PER_MINUTE", 120, low=1, high=1_000_000)


# --- the emulator -----------------------------------------------------------------------------------
# Limits of the experiments that a volunteer may keep, and of their runs that are waiting or running.
EMULATOR_EXPERIMENTS_MAX = env.integer("EMULATOR_EXPERIMENTS_MAX", 100, low=1, high=100_000)
EMULATOR_RUNS_MAX = env.integer("EMULATOR_RUNS_MAX", 40, low=1, high=10_000)
# A run's limits: processor time and memory. Each run is a separate process.
EMULATOR_RUN_SECS_MAX = env.integer("EMULATOR_RUN_SECS_MAX", 300, low=1, high=800)
EMULATOR_RUN_BYTES_MAX = env.integer("EMULATOR_RUN_BYTES_MAX", 1024**3, low=768 * 1024**2, high=64 * 1024**3)

# --- work that volunteers ask for: runs of the emulator, copies of their data, long histories ----------
# How much of it may run at once for one volunteer, over all workers.
REQUESTED_WORK_PER_PERSON = env.integer("REQUESTED_WORK_PER_PERSON", 2, low=1, high=1000)
# Histories with more rows than this are written to files by workers.
HISTORY_DOWNLOAD_ROWS = env.integer("HISTORY_DOWNLOAD_ROWS", 20_000, low=0, high=10_000_000)


# --- secrets: given, or made once under var/ ------------------------------------------------------
def _new_secret() -> str:
    return secrets.token_urlsafe(48)


# The secrets that this machine made itself.
SECRETS_MADE_HERE: list[str] = []


def _stored_secret(name: str, make: Callable[[], str] = _new_secret) -> str:
    """The secret from the environment or, for a private installation, from var/keys/, made at first start."""
    if given := env.secret(name):
        return given
    SECRETS_MADE_HERE.append(name)
    path = VAR_DIR / "keys" / name.lower()
    if not path.exists():
        make_file(path, make())
    if not (secret := path.read_text().strip()):
        # An empty text protects nothing.
        raise env.SettingError(f"{path} is empty. Put it back from a backup or, if the site was never used, remove it.")
    return secret


SECRET_KEY = _stored_secret("SECRET_KEY")
# Encrypts account keys at projects; changing it makes those unreadable, so it is not SECRET_KEY.
ACCOUNT_KEY_SECRET = _stored_secret("ACCOUNT_KEY_SECRET")
# Certifies uploads; with another value, the outputs of jobs in progress are refused.
UPLOAD_SECRET = _stored_secret("UPLOAD_SECRET")
# Proves to push services that a message is from this site; with another one, browsers have to subscribe again.
VAPID_PRIVATE_KEY = _stored_secret("VAPID_PRIVATE_KEY", web_push.new_key_text)
try:
    web_push.parse_key(VAPID_PRIVATE_KEY)
except web_push.PushKeyError as _error:
    raise env.SettingError(f"Setting VAPID_PRIVATE_KEY cannot be used: {_error}.") from None
# The key that signs certificates is derived from it; with another value, earlier ones no longer verify.
CERTIFICATE_SECRET = _stored_secret("CERTIFICATE_SECRET")

# --- PostgreSQL, broker, cache ----------------------------------------------------------------------
DATABASE_URL = env.secret("DATABASE_URL")
# Demo data at the first start: on for a private installation with its embedded database.
DEMO = env.switch("DEMO", not DATABASE_URL)
BROKER_URL = env.secret("BROKER_URL")
CACHE_URL = env.secret("CACHE_URL")
if not (DATABASE_URL and BROKER_URL and CACHE_URL):
    from portal.dev import embedded

    _servers = embedded.ensure(VAR_DIR, database=not DATABASE_URL, valkey=not (BROKER_URL and CACHE_URL))
    DATABASE_URL = DATABASE_URL or _servers.database_url
    BROKER_URL = BROKER_URL or _servers.broker_url
    CACHE_URL = CACHE_URL or _servers.cache_url

# Whether web services or workers run on more than one machine: `check --deploy` then checks what they must share.
SEVERAL_MACHINES = env.switch("SEVERAL_MACHINES", False)
DB_POOL_MAX = env.integer("DB_POOL_MAX", 16, low=1, high=1000)
_database: dict[str, Any] = env.database(DATABASE_URL)
_database["OPTIONS"] = {
    # A prepared statement is planned once per connection, and not again for its parameters each time: for the long
    # statements of the client protocols that takes longer than running them.
    "options": "-c plan_cache_mode=force_generic_plan",
    # Requests share connections, so one whose other end has vanished must be noticed soon. Over TCP only.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    # A pool opens one connection at a time: one that hangs would block it long after an outage has ended.
    "connect_timeout": 2,
    # A former primary, which is read-only now, is not used.
    "target_session_attrs": "read-write",
    **_database.get("OPTIONS", {}),
    # By default the pool waits longer after each attempt, up to minutes after an outage has ended.
    "pool": {
        "min_size": 1,
        "max_size": DB_POOL_MAX,
        "timeout": 3,
        "reconnect_timeout": 2,
    },
    "application_name": "cobblestone",
}
# After a failover no request gets a connection that died in it.
_database["CONN_HEALTH_CHECKS"] = True
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    "default": {
        "BACKEND": "portal.ops.cache.FallbackCache",
        "LOCATION": CACHE_URL,
        "OPTIONS": {
            "socket_connect_timeout": 2,
            "socket_timeout": 2,
            "serializer": "portal.ops.cache.JsonSerializer",
        },
    }
}

CELERY_BROKER_URL = BROKER_URL
if not BROKER_URL.startswith("amqp"):
    # Otherwise queueing a task would block for ever on a machine that has vanished.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 4, "socket_timeout": 10, "socket_keepalive": True}
CELERY_TASK_IGNORE_RESULT = True
# A worker may be killed during a task: tasks are safe to run twice, and are then queued again.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 900
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Requested work, and what may take long, has workers of its own, so that no other task waits for it.
CELERY_TASK_ROUTES = {
    "accounting.tasks.import_statistics_of": {"queue": "requested"},
    "accounting.tasks.ask_for_account": {"queue": "requested"},
    "accounting.tasks.check_account": {"queue": "requested"},
    "portal.tasks.carry_out_requested": {"queue": "requested"},
    "portal.tasks.carry_out_maintenance": {"queue": "requested"},
}
CELERY_TASK_DEFAULT_QUEUE = "celery"
# In memory: the database records what was done when (portal/periodic/turns.py).
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
CELERY_BEAT_SCHEDULE = timetable(
    ROOMS,
    validator_secs=VALIDATOR_EVERY_SECS,
    transitioner_secs=TRANSITIONER_EVERY_SECS,
    export_secs=STATISTICS_EXPORT_EVERY_SECS,
    has_demo=DEMO,
)

# --- Django -----------------------------------------------------------------------------------------
MIDDLEWARE = [
    "portal.web.middleware.ClientMiddleware",  # hands settings.CLIENT_PATHS past everything below
    "portal.web.middleware.RequestLogMiddleware",
    "portal.web.middleware.SiteLinksMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.web.compression.CompressionMiddleware",
    "portal.web.middleware.ContentPolicyMiddleware",
    "portal.web.unavailable.DatabaseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.languages.middleware.LanguageMiddleware",
    "portal.web.middleware.NoStoreMiddleware",
    "portal.public_pages.look_around.LookAroundMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "portal.web.middleware.OperatorIdleMiddleware",
    "portal.web.middleware.SecondFactorMiddleware",
    "portal.people.fresh_login.FreshLoginMiddleware",
    "portal.web.middleware.PasswordChangedMiddleware",
    "portal.web.middleware.WhoChangesMiddleware",
    "portal.web.storage_errors.StorageErrorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.web.context.site",
            ],
        },
    },
]
LANGUAGE_CODE = "en"
USE_I18N = True
# Texts are written in English. Each other language has catalogues (CONTRIBUTING.md).
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("es", "Español"), ("fr", "Français")]
TRANSLATIONS = [code for code, _name in LANGUAGES if code != LANGUAGE_CODE]
# Listed here, the apps' translations take precedence over those of libraries for the same text.
LOCALE_PATHS = [BASE_DIR / app / "locale" for app in catalogue_apps]
FORMAT_MODULE_PATH = "portal.languages.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
# Chart.js comes with the admin's theme, which would load it on all pages, so static/ has an empty file of that name.
STATICFILES_DIRS = [BASE_DIR / "static", ("chartjs", THEME_DIR / "static" / "unfold" / "js" / "chart")]
# Programs, inputs and outputs of jobs, in a folder or wherever the storage class puts them.
MEDIA_ROOT = Path(env.text("FILES_DIR", str(VAR_DIR / "files")))
STORAGES: dict[str, Any] = {
    "default": object_storage.storage_entry(),
    "staticfiles": {
        "BACKEND": env.text("STATICFILES_STORAGE", "whitenoise.storage.CompressedManifestStaticFilesStorage"),
    },
}
# Pages refer only to the hashed files, so the others need neither space nor compression.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
# Formats that are compressed already, and files that only developers' tools request.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("png", "jpg", "gif", "webp", "ico", "woff", "woff2", "ttf", "eot", "gz", "map")
# The addresses that BOINC clients request. They bypass all middleware.
CLIENT_PATHS = paths_of(ROOMS)
# The time limits of a client's body, beyond the time that its length needs, and of its answer.
CLIENT_BODY_SECS = env.integer("CLIENT_BODY_SECS", 20, low=1, high=600)
CLIENT_ANSWER_SECS = env.integer("CLIENT_ANSWER_SECS", 60, low=1, high=600)
# Concurrent requests of one address, or of one IPv6 network (/64), in an event loop.
REQUESTS_PER_ADDRESS = env.integer("REQUESTS_PER_ADDRESS", 100, low=1, high=100_000)
SPECTACULAR_SETTINGS = {
    "TITLE": f"{SITE_NAME} REST API",
    "VERSION": REST_API_VERSION,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "portal.rest.schema.add_common"],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
SILENCED_SYSTEM_CHECKS: list[str] = env.words("SILENCED_SYSTEM_CHECKS", [])

# --- people -------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "portal.User"
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
    "portal.people.backends.ClientPasswordBackend",
]
LOGIN_REDIRECT_URL = "home"
LOGIN_URL = "account_login"
# An address gets at most ten password-reset mails and ten confirmation mails a day, no matter who requests them.
ACCOUNT_RATE_LIMITS = {"reset_password": "20/m/ip,5/m/key,10/d/key", "confirm_email": "1/3m/key,10/d/key"}
ACCOUNT_ADAPTER = "portal.people.adapter.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
# An account works at once: somebody who came to attach a computer is asked to confirm the address later.
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = f"{SITE_NAME}: "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
MFA_ADAPTER = "portal.people.adapter.TwoFactorAdapter"
MFA_TOTP_ISSUER = SITE_NAME
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
vars().update(env.mail(env.secret("EMAIL_URL") or "consolemail://"))
EMAIL_TIMEOUT = 10
# The dashboard shows mails that were sent and refused.
COUNTED_EMAIL_BACKEND = vars()["EMAIL_BACKEND"]
EMAIL_BACKEND = "portal.ops.mail_backend.CountingBackend"
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "Cobblestone <noreply@example.org>")

# --- requests to other servers ------------------------------------------------------------------
# Networks that the site may ask although they are not public.
FETCH_ALLOWED_NETWORKS = env.networks("FETCH_ALLOWED_NETWORKS")
# Time limit of a request, redirects included.
FETCH_TIMEOUT_SECS = env.integer("FETCH_TIMEOUT_SECS", 20, low=1, high=300)

# --- security -------------------------------------------------------------------------------------------
# Whether a proxy is in front, whose X-Forwarded-For, X-Forwarded-Proto and X-Request-ID are trusted.
BEHIND_PROXY = env.switch("BEHIND_PROXY", False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_SSL_REDIRECT = HTTPS and env.switch("SECURE_SSL_REDIRECT", True)
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 31_536_000 if HTTPS else 0, low=0, high=10 * 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_AGE = 365 * 86_400
LANGUAGE_COOKIE_SAMESITE = "Lax"
# Operators without a second factor can only set one up.
STAFF_SECOND_FACTOR = env.switch("STAFF_SECOND_FACTOR", HTTPS)
# Whether the password of an account with a second factor is enough for its BOINC clients, which cannot ask for it.
CLIENT_PASSWORD_ALONE = env.switch("CLIENT_PASSWORD_ALONE", False)
# Whether steps in the admin that could do most harm have to be confirmed by a second operator.
TWO_PERSONS = env.switch("TWO_PERSONS", False)
# Operators who are idle for this long have to sign in again; 0: no limit.
STAFF_IDLE_SECS = env.integer("STAFF_IDLE_SECS", 3600, low=0, high=14 * 86_400)
SESSION_ENGINE = "portal.sign_in.sessions"
SESSION_COOKIE_HTTPONLY = True
# Browsers accept a cookie with this prefix only from this very host, over https: none from another host of its domain.
_COOKIE_PREFIX = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
KNOWN_BROWSER_COOKIE_NAME = f"{_COOKIE_PREFIX}known"
# Messages to the next page are stored in the session, not in another cookie.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
X_FRAME_OPTIONS = "DENY"
UNFOLD = {
    "SITE_TITLE": SITE_NAME,
    "SITE_HEADER": SITE_NAME,
    "DASHBOARD_CALLBACK": "portal.dashboard.views.dashboard",
    "SIDEBAR": {"show_search": True, "navigation": "portal.dashboard.navigation.groups"},
    "STYLES": [lambda _: static("portal/admin.css")],
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("portal/favicon.svg")},
    ],
    "COLORS": ADMIN_COLORS,
}

# Changes of settings are stored in a table of ours, with their values as JSON instead of text (portal/audit).
AUDITLOG_LOGENTRY_MODEL = "portal.Change"
AUDITLOG_STORE_JSON_CHANGES = True
# Without its own unused table, which would have foreign keys to people.
MIGRATION_MODULES = {"auditlog": None}

# --- monitoring -------------------------------------------------------------------------------------------
# Requests with this token may read /metrics; if it is empty, requests from this machine may.
METRICS_TOKEN = env.secret("METRICS_TOKEN")
LOGGING_CONFIG = "portal.ops.logs.configure"
LOGGING = {
    "json": env.choice("LOG_FORMAT", "console" if DEBUG or sys.stderr.isatty() else "json", ["json", "console"])
    == "json",
    "level": env.choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"]),
}
