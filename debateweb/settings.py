"""
Settings, read from the environment once and typed. Wrong values stop the start in one line.

Importing this must stay fast: every command pays for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from debateweb import env, logs, proxies
from debateweb.errors import DebatewebError
from debateweb.services import postgres
from debateweb.services.datadir import open_data_dir, secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = env.env_choice("DEBATEWEB_ENV", "development", ("development", "production"))
IS_PRODUCTION = ENVIRONMENT == "production"
DEBUG = False

try:
    # A relative path counts from the project, whatever folder a command is started in.
    DATA_DIR = open_data_dir(BASE_DIR / env.env_str("DEBATEWEB_DATA_DIR", "var"))
    _secret = env.env_optional("DEBATEWEB_SECRET_KEY")
    if _secret is None and IS_PRODUCTION:
        raise ImproperlyConfigured("DEBATEWEB_ENV=production needs DEBATEWEB_SECRET_KEY")
    SECRET_KEY = secret_key(DATA_DIR) if _secret is None else _secret
except DebatewebError as exc:
    raise ImproperlyConfigured(exc.message) from exc
if len(SECRET_KEY) < 32:
    raise ImproperlyConfigured("DEBATEWEB_SECRET_KEY must have at least 32 characters")

HOST = env.env_str("DEBATEWEB_HOST", "127.0.0.1")
PORT = env.env_int("DEBATEWEB_PORT", 8000, low=1, high=65535)
ALLOWED_HOSTS = env.env_list("DEBATEWEB_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
if IS_PRODUCTION and os.environ.get("DEBATEWEB_ALLOWED_HOSTS") is None:
    raise ImproperlyConfigured("DEBATEWEB_ENV=production needs DEBATEWEB_ALLOWED_HOSTS")
if IS_PRODUCTION and (not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS):
    raise ImproperlyConfigured("DEBATEWEB_ALLOWED_HOSTS must name hosts in production, not *")

INSTALLED_APPS = [
    "debateweb",
    "runs",
    "audits",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "template_partials",
    "django_htmx",
    "csp",
]
AUTH_USER_MODEL = "debateweb.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "debateweb.urls"
WSGI_APPLICATION = "debateweb.wsgi.application"

MIDDLEWARE = [
    "debateweb.proxies.ProxyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "debateweb.middleware.FragmentMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "debateweb.context.site",
            ],
        },
    },
]

# Where no URL names a server we run our own; its sockets' paths follow from the data folder.
_database_url = env.env_optional("DATABASE_URL") or None
_redis_url = env.env_optional("REDIS_URL") or None
DATABASE_IS_EMBEDDED = _database_url is None
BROKER_IS_EMBEDDED = _redis_url is None
DATABASE_ROLE = env.env_choice("DEBATEWEB_DB_ROLE", "application", ("application", "owner"))
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": postgres.DATABASE,
        "USER": postgres.OWNER if DATABASE_ROLE == "owner" else postgres.APPLICATION,
        "HOST": str(DATA_DIR.postgres_sockets),
    }
    if _database_url is None
    else env.database_from_url(_database_url)
}
DATABASES["default"] |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
# Threads of a worker that wait for models hold no connection: a few serve many threads. Who
# waits for a person has no pool: a pool waits long for a database that is away.
DB_CONNECTIONS = env.env_int("DEBATEWEB_DB_CONNECTIONS", 0, low=0, high=400)
if DB_CONNECTIONS:
    _pool = {"min_size": 1, "max_size": DB_CONNECTIONS, "timeout": 30.0, "max_idle": 60.0}
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = _pool

_cache_url = f"unix://{DATA_DIR.valkey_socket}?db=1" if _redis_url is None else _redis_url
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": _cache_url,
        "KEY_PREFIX": "debateweb",
    }
}

# The broker is a doorbell: tasks are idempotent, the sweep rings again what was lost.
CELERY_BROKER_URL = (
    env.env_optional("DEBATEWEB_BROKER_URL")
    or _redis_url
    or f"redis+socket://{DATA_DIR.valkey_socket}?virtual_host=0"
)
# RabbitMQ's driver takes every option for one of its own and refuses these.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"global_keyprefix": "debateweb:", "visibility_timeout": 300}
    if CELERY_BROKER_URL.startswith("redis")
    else {}
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "runs.sweep": {"queue": "default"},
    "runs.*": {"queue": "rounds"},
    "audits.reports.*": {"queue": "reports"},
    "audits.*": {"queue": "judges"},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
SWEEP_SECONDS = 3.0
REPORT_SWEEP_SECONDS = 10.0
WEBHOOK_SWEEP_SECONDS = 10.0
CELERY_BEAT_SCHEDULE = {
    # A sweep that waited longer than one period is worth nothing: the next one is there.
    "sweep": {
        "task": "runs.sweep",
        "schedule": SWEEP_SECONDS,
        "options": {"expires": SWEEP_SECONDS},
    },
    "sweep-reports": {
        "task": "audits.reports.sweep",
        "schedule": REPORT_SWEEP_SECONDS,
        "options": {"expires": REPORT_SWEEP_SECONDS, "queue": "default"},
    },
    "sweep-webhooks": {
        "task": "debateweb.webhooks.sweep",
        "schedule": WEBHOOK_SWEEP_SECONDS,
        "options": {"expires": WEBHOOK_SWEEP_SECONDS},
    },
}
#: Hosts of webhooks that may be private or speak plain HTTP.
WEBHOOK_HOSTS = env.env_list("DEBATEWEB_WEBHOOK_HOSTS", [])
WORKER_THREADS = env.env_int("DEBATEWEB_WORKER_THREADS", 96, low=1, high=1024)

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # Serves the apps' own files: nothing to collect, no build step.
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = IS_PRODUCTION
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "debateweb.errorpages.csrf_failure"
CSRF_COOKIE_SECURE = IS_PRODUCTION
# ".lab.example" among the hosts stands for the host itself and whatever is below it.
CSRF_TRUSTED_ORIGINS = [
    f"https://{name}"
    for host in ALLOWED_HOSTS
    for name in ([host[1:], f"*{host}"] if host.startswith(".") else [host])
    if IS_PRODUCTION
]
TRUSTED_PROXIES = proxies.trusted_networks()
# The middleware drops this header where anybody but a trusted proxy sent it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if IS_PRODUCTION else 0
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "connect-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

LOGGING = logs.configuration(env.env_str("DEBATEWEB_LOG_LEVEL", "INFO"))
