"""All settings, made of the environment, which is read once. A bad value stops the start with its name and what was expected."""

import os
import shlex
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from csp.constants import NONE, SELF

from webapp.environment import BASE_DIR, Environment, pass_on, read
from webapp.machine.places import facts, socket_path
from webapp.secret_files import SECRETS

ENV = read()
pass_on(ENV, os.environ)
# the server's own, which what it starts does not get (see core.children); TOUCHSTONE_... are for the trainer as well
SERVER_VARIABLES = frozenset(
    [name.upper() for name in Environment.model_fields if not name.startswith("touchstone_")]
    + [f"{name.upper()}_FILE" for name in SECRETS]
)
VAR = ENV.touchstone_var.resolve()


def _secret_key() -> str:
    """The given key, or one made once and kept under var/ so that sessions survive a restart."""
    if ENV.secret_key:
        return ENV.secret_key
    from django.core.management.utils import get_random_secret_key

    path = VAR / "secret_key"
    if not path.exists():
        VAR.mkdir(parents=True, exist_ok=True)
        complete = path.with_name(f"secret_key.{os.getpid()}")
        with open(os.open(complete, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(get_random_secret_key())
        with suppress(FileExistsError):  # another process was first; its key counts
            os.link(complete, path)
        complete.unlink()
    return path.read_text()


SECRET_KEY = _secret_key()
SECRET_KEY_FALLBACKS = list(ENV.secret_key_fallbacks)
DEBUG = ENV.debug
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", ENV.host]
ALLOWED_HOSTS += [urlsplit(url).hostname or "" for url in (ENV.public_url, ENV.internal_url) if url]
if ENV.public_url:
    CSRF_TRUSTED_ORIGINS = [ENV.public_url.rstrip("/")]
SECURE = bool(ENV.public_url and ENV.public_url.startswith("https://"))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SESSION_COOKIE_HTTPONLY = True
# Browsers accept a cookie with this prefix only over https, from this host, for all paths: no neighbour can plant one
_COOKIES = "__Host-" if SECURE else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_COOKIES}sessionid", f"{_COOKIES}csrftoken"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # in no cookie of their own
# Browsers that came by https once do not come back by http; only if PUBLIC_URL promises that https stays
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE and ENV.hsts_subdomains
SESSION_ENGINE = "webapp.accounts.sessions.store"
SESSION_HOURS, SESSION_IDLE_HOURS = ENV.session_hours, ENV.session_idle_hours
SESSION_COOKIE_AGE = round(3600 * SESSION_HOURS)
CSRF_FAILURE_VIEW = "webapp.core.views.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_htmx",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
    "webapp.core",
    "webapp.localstack",
    "webapp.accounts",
    "webapp.identity",
    "webapp.webhooks",
    "webapp.datasets",
    "webapp.inference",
    "webapp.usage",
    "webapp.weights",
    "webapp.annotation",
    "webapp.judging",
    "webapp.evaluation",
    "webapp.experiments",
    "webapp.tracking",
    "webapp.playground",
    "webapp.notices",
    "webapp.reports",
    "webapp.backups",
    "webapp.personal_data",
]

MIDDLEWARE = [
    "webapp.core.requests.middleware.ApiErrorsMiddleware",
    "webapp.core.requests.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "webapp.core.requests.middleware.UsableMiddleware",
    "webapp.core.pages.static_files.KeptFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.accounts.authentication.middleware.WorkspaceMiddleware",
    "webapp.identity.middleware.SecondFactorMiddleware",
    "webapp.core.scanning.ScanMiddleware",
    "axes.middleware.AxesMiddleware",
]


def _origins(*urls: str | None) -> list[str]:
    return [f"{parts.scheme}://{parts.netloc}" for parts in (urlsplit(url) for url in urls if url)]


CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "connect-src": [SELF],
        "img-src": [SELF, "data:"],
        "style-src": [SELF],
        "script-src": [SELF],
        "font-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        # browsers apply it also to the addresses to which the response to a form redirects: the company's sign-in
        "form-action": [SELF, *_origins(ENV.oidc_server_url, ENV.saml_sso_url)],
        "frame-ancestors": [NONE],
    }
}

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
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
            ],
        },
    }
]


def _database() -> dict[str, object]:
    """DATABASE_URL, or the socket of the embedded server if `manage.py up` started it."""
    from psycopg.conninfo import conninfo_to_dict

    embedded = {"host": facts(VAR, "postgres").get("host", VAR / "run"), "dbname": "touchstone", "user": "touchstone"}
    parts = conninfo_to_dict(ENV.database_url) if ENV.database_url else embedded
    named = {"dbname", "user", "password", "host", "port"}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": str(parts.get("dbname", "touchstone")),
        "USER": str(parts.get("user", "")),
        "PASSWORD": str(parts.get("password", "")),
        "HOST": str(parts.get("host", "")),
        "PORT": str(parts.get("port", "")),
        # a dead connection is found before a request gets it, not by the request
        "CONN_HEALTH_CHECKS": True,
        # the ORM's statements are never prepared; those of `webapp.core.database.prepared` are
        "OPTIONS": {"connect_timeout": 5} | {name: value for name, value in parts.items() if name not in named},
    }


# The web server shares open connections between its threads (`webapp.asgi` turns this on); commands open their own.
# A connection for each thread that answers requests, and some for sockets and streams.
HTTP_THREADS = 8
DATABASE_POOL = {"min_size": 1, "max_size": HTTP_THREADS + 8, "timeout": 3}
DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_SOCKET = socket_path(VAR, "redis.sock")
REDIS_URL = ENV.redis_url or f"unix://{REDIS_SOCKET}"


def _trainer(python: Path | str) -> str:
    """Ray would give one thread to a job that reserves no CPU; the trainer chooses for itself."""
    return f"cd {shlex.quote(str(BASE_DIR))} && exec env -u OMP_NUM_THREADS {shlex.quote(str(python))} -m trainer job"


# Two runs on two processors each take more than twice as long. A cluster of your own distributes work to its machines itself.
MAX_RUNNING_RUNS = ENV.max_running_runs or (None if ENV.ray_address else max(1, (os.cpu_count() or 1) // 2))
# A cluster on other machines needs the trainer installed there; TRAINER_COMMAND says how to start it.
TRAINER_COMMAND = ENV.trainer_command or _trainer(sys.executable)
# Without its own command, a run that samples with vLLM starts where vLLM is: in this environment (`make gpu`), else in the one that `make
# vllm` makes, whose torch has no CUDA.
_VLLM_BESIDE = find_spec("vllm") is not None
VLLM_ENVIRONMENT = None if ENV.trainer_command else BASE_DIR / ".venv-vllm"
VLLM_TRAINER_COMMAND = ENV.trainer_command or _trainer(
    sys.executable if _VLLM_BESIDE else BASE_DIR / ".venv-vllm" / "bin" / "python"
)
# Items of answers are matched by meaning in a separate process, which a worker starts; see annotation.agreement.matching.
MATCH_COMMAND = [sys.executable, "-m", "trainer", "match"]
# The same for measures of responses that need a model; see trainer.response_measures.
DIVERSITY_COMMAND = [sys.executable, "-m", "trainer", "diversity"]
NOVELTY_COMMAND = [sys.executable, "-m", "trainer", "novelty"]
# The same for a model of an unknown architecture, when it is registered; see trainer.weights.trial.
TRIAL_COMMAND = [sys.executable, "-m", "trainer", "try-model"]
# The same for a judge with local weights that is tried on a few examples; see trainer.judges.local.
JUDGE_COMMAND = [sys.executable, "-m", "trainer", "judge-local"]
# The same for a model that somebody tries; the web server starts the process and keeps it for a while; see trainer.serving.
MODEL_COMMAND = [sys.executable, "-m", "trainer", "model-server"]
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}
# VERSION is part of each key: releases up to 0.2 left pickles in Redis under version 1, which nobody reads any more
CACHES = {"default": {"BACKEND": "webapp.core.cache.SharedRedisCache", "LOCATION": REDIS_URL, "VERSION": 2}}
# Celery writes the address of a socket in another way than the Redis client
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")

CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A request must not wait for a broker that is down: upkeep finds the row that it wrote.
CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}
CELERY_TASK_ACKS_LATE = True  # a dead worker's task runs again; tasks claim their row, so twice is harmless
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "webapp.beat:BeatScheduler"
CELERY_BEAT_SCHEDULE = {
    # a round that could not start in time is dropped: the next one sees the same
    "watch runs": {"task": "workers.upkeep.watch_runs", "schedule": 10.0, "options": {"expires": 10.0}},
    "index words": {"task": "workers.runs.index_words", "schedule": 5.0, "options": {"expires": 5.0}},
    "keep means of seeds": {"task": "workers.runs.keep_means", "schedule": 15.0, "options": {"expires": 15.0}},
    "watch sweeps": {"task": "workers.sweeps.watch", "schedule": 10.0, "options": {"expires": 10.0}},
    "watch weights jobs": {"task": "workers.weights.watch", "schedule": 10.0, "options": {"expires": 10.0}},
    "return expired seats": {
        "task": "workers.annotation.expire_leases",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "make lost tasks": {"task": "workers.annotation.make_waiting", "schedule": 60.0, "options": {"expires": 60.0}},
    "take up lost jobs": {"task": "workers.upkeep.take_up_lost", "schedule": 30.0, "options": {"expires": 30.0}},
    "delete the rest": {"task": "workers.imports.delete_rest", "schedule": 30.0, "options": {"expires": 30.0}},
    "take up lost measuring": {"task": "workers.review.take_up_lost", "schedule": 60.0, "options": {"expires": 60.0}},
    "take up lost models": {"task": "workers.endpoints.requeue_lost", "schedule": 60.0, "options": {"expires": 60.0}},
    "forget old questions": {
        "task": "workers.questions.forget_old",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "forget fetched": {"task": "workers.upkeep.forget_fetched", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "erase deleted runs": {
        "task": "workers.upkeep.erase_deleted_runs",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "clear sessions": {"task": "workers.upkeep.clear_sessions", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "hash former codes": {"task": "workers.upkeep.hash_former_codes", "schedule": 60.0, "options": {"expires": 60.0}},
    "take up webhooks": {"task": "workers.webhooks.take_up", "schedule": 10.0, "options": {"expires": 10.0}},
    "seal the audit log": {"task": "workers.audit.seal", "schedule": 60.0, "options": {"expires": 60.0}},
    "look after backups": {"task": "workers.backups.round", "schedule": 60.0, "options": {"expires": 60.0}},
    "look after exports of personal data": {
        "task": "workers.personal_data.look",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "delete checkpoints": {
        "task": "workers.runs.delete_checkpoints",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "look at reports": {"task": "workers.reports.look_again", "schedule": 600.0, "options": {"expires": 600.0}},
    "mail notices": {"task": "workers.notices.post", "schedule": 15.0, "options": {"expires": 15.0}},
    "trim notices": {"task": "workers.notices.trim", "schedule": 86400.0, "options": {"expires": 3600.0}},
    "trim webhooks": {"task": "workers.webhooks.trim", "schedule": 86400.0, "options": {"expires": 3600.0}},
}
LOGGED_SILENCE_HOURS = ENV.logged_silence_hours
WEBHOOK_NETWORKS = ENV.webhook_networks
ENDPOINT_NETWORKS = ENV.endpoint_networks
CLAMD, CLAMD_AWAY = ENV.clamd, ENV.clamd_away
AUDIT_SYSLOG = ENV.audit_syslog
MODEL_ROOTS = ENV.model_roots or (VAR / "models",)
BACKUP_FOLDER = ENV.backup_folder
BACKUP_KEY_FILE = ENV.backup_key_file
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR / "run" / "beat")

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "webapp.accounts.sign_in.passwords.NotGuessable"},
]
AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = (
    True  # it would store the addresses of sign-in links, which are secrets; the audit log records sign-ins
)
AXES_SENSITIVE_PARAMETERS = ["next"]  # may lead to an invitation, whose address is a secret
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # one person's errors do not lock out a shared network address
AXES_LOCKOUT_CALLABLE = "webapp.accounts.sign_in.views.locked_out"
AXES_USERNAME_FORM_FIELD = "email"
LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"

MAIL_URL = ENV.mail_url
_mail = urlsplit(ENV.mail_url or "smtp://localhost")
EMAIL_HOST, EMAIL_PORT = _mail.hostname or "localhost", _mail.port or {"smtps": 465, "smtp": 587}.get(_mail.scheme, 25)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.scheme == "smtps", _mail.scheme == "smtp"
EMAIL_TIMEOUT = 10  # seconds that a person who invites waits for the mail server
DEFAULT_FROM_EMAIL = ENV.mail_from

# Second factors are allauth's; accounts, passwords, sessions and all pages stay ours: see `webapp.identity`.
ACCOUNT_ADAPTER = "webapp.identity.adapters.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_ADAPTER = "webapp.identity.adapters.CompanyAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_LOGIN_ON_GET = False  # a link on another site must not sign anybody in
COMPANY = "company"  # the name of the only provider in addresses
COMPANY_SAML = "company-saml"  # the provider under which accounts of its SAML sign-in are known
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": COMPANY,
                "name": ENV.oidc_name,
                "client_id": ENV.oidc_client_id,
                "secret": ENV.oidc_client_secret,
                "settings": {"server_url": ENV.oidc_server_url},
            }
        ]
        if ENV.oidc_server_url
        else [],
    },
    "saml": {
        "provider_class": "webapp.identity.saml.CompanySaml",
        "APPS": [
            {
                "provider_id": COMPANY_SAML,
                "name": ENV.saml_name,
                "client_id": COMPANY,
                "settings": {
                    "idp": {
                        "entity_id": ENV.saml_entity_id,
                        "sso_url": ENV.saml_sso_url,
                        "x509cert": ENV.saml_certificate_file.read_text() if ENV.saml_certificate_file else "",
                    },
                    # anybody who can write to the browser can write this cookie, so its content is not trusted
                    "advanced": {
                        "strict": True,
                        "want_assertion_signed": True,
                        "want_name_id": True,
                        "allow_single_label_domains": True,  # a host name without a dot is one in a company's network
                    },
                },
            }
        ]
        if ENV.saml_sso_url
        else [],
    },
}
MFA_ADAPTER = "webapp.identity.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_ALLOW_UNVERIFIED_EMAIL = True  # allauth's list of addresses is not used
MFA_TOTP_TOLERANCE = 1  # accepts a code of the half minute before or after, because phones' clocks differ
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not SECURE  # browsers themselves allow it only at localhost

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "webapp.core.pages.static_files.KnownAddresses"},
}
WHITENOISE_USE_FINDERS = True  # read from the tree when a process starts: no collecting step
STATICFILES_DIRS = [BASE_DIR / "webapp" / "static"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "webapp.core.monitoring.logs.RequestIdFilter"},
        "refusals": {"()": "webapp.core.monitoring.logs.Refusals"},
        "no_secrets": {"()": "webapp.core.monitoring.logs.NoSecrets"},
        "one_line": {"()": "webapp.core.monitoring.logs.OneLine"},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(request_id)s %(person)s %(name)s: %(message)s"},
        "json": {"()": "webapp.core.monitoring.logs.JsonLines"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": ENV.log_format,
            "filters": ["request_id", "refusals", "no_secrets", "one_line"],
        }
    },
    "root": {"handlers": ["console"], "level": ENV.log_level},
    # the server's own lines in the same format; it has set up its own handlers by then
    "loggers": {
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.error": {"handlers": [], "propagate": True},
        "uvicorn.access": {
            "handlers": [],
            "propagate": False,
        },  # as --no-access-log left it, before its parent was named here
    },
}
