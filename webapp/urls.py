"""The URL map. Each app names its own pages; the API and the websockets hang beside them."""

from importlib import import_module
from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from webapp import reference
from webapp.api import api
from webapp.home import home

APPS = ("webapp.core", "webapp.accounts", "webapp.datasets", "webapp.inference", "webapp.experiments")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home, name="home"),
    path("api/v1/docs", reference.page, name="api_docs"),
]
websocket_urlpatterns: list[URLPattern] = []
for app in APPS:
    if find_spec(f"{app}.urls"):
        urlpatterns.append(path("", include(f"{app}.urls")))
    if find_spec(f"{app}.consumers"):
        websocket_urlpatterns += import_module(f"{app}.consumers").websocket_urlpatterns

urlpatterns.append(path("api/v1/", api.urls))

handler400 = "webapp.core.views.bad_request"
handler403 = "webapp.core.views.forbidden"
handler404 = "webapp.core.views.not_found"
handler500 = "webapp.core.views.server_error"
