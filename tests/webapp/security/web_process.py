"""Loads what the web process loads before its first request. `test_proxies` forks processes from it, and each reads the environment again.

The URL map is left out, because no request of these tests reaches it, and loading it takes most of the time of a process.
"""

import sys
import types
from importlib import import_module
from typing import Any

from django.conf import settings
from django.utils.functional import empty

OF_THE_ENVIRONMENT = ("webapp.settings", "webapp.core.requests.handler", "webapp.asgi")


def load_again() -> None:
    """Makes the settings of the present environment, and what is made of them when it is loaded."""
    lazy: Any = settings
    lazy._wrapped = empty
    for name in OF_THE_ENVIRONMENT:
        sys.modules.pop(name, None)
    for name in OF_THE_ENVIRONMENT:
        import_module(name)


modules: Any = sys.modules
modules["webapp.urls"] = types.SimpleNamespace(websocket_urlpatterns=[])
import_module("webapp.asgi")
