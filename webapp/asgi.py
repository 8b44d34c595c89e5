"""The entry for HTTP and websockets."""

import os
from typing import Any

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.conf import settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from trainer import tracing
from webapp.machine.places import metrics_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Before the client library is imported: then each web process counts in a file, and any of them can add up all files
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(metrics_folder(settings.VAR)))
options: Any = settings.DATABASES["default"]["OPTIONS"]
options["pool"] = settings.DATABASE_POOL
django.setup(set_prefix=False)  # fills the app registry, which the imports below need

from webapp.accounts.authentication.headers import has_account  # noqa: E402
from webapp.core.requests.handler import ThreadedHandler  # noqa: E402
from webapp.experiments.live.consumers import FeedDoor  # noqa: E402
from webapp.urls import websocket_urlpatterns  # noqa: E402

tracing.serve("touchstone-web")
application: Any = ProtocolTypeRouter(
    {
        "http": ThreadedHandler(settings.HTTP_THREADS, has_account),
        # the feeds check the user themselves, repeatedly, and tell the page when nobody can answer
        "websocket": FeedDoor(SessionMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
# Unless a proxy is named, the network address of the connection is the person's, and headers are not trusted
if settings.ENV.trusted_proxies:
    trusted = [str(network) for network in settings.ENV.trusted_proxies]
    application = ProxyHeadersMiddleware(application, trusted_hosts=trusted)
