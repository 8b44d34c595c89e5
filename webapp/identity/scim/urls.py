"""Addresses of the SCIM service; names of resources are the protocol's.

Its views are loaded with the first request: the protocol's library builds hundreds of models, a seventh of the time to load all
addresses, and few installations have a directory.
"""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

PEOPLE, GROUPS = "PEOPLE", "GROUPS"  # of `views`


@csrf_exempt
@login_not_required
def listed(request: HttpRequest, kind: str) -> HttpResponse:
    from . import views

    return views.listed(request, getattr(views, kind))


@csrf_exempt
@login_not_required
def one(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    from . import views

    return views.one(request, getattr(views, kind), key)


@csrf_exempt
@login_not_required
def described(request: HttpRequest, **asked: str) -> HttpResponse:
    from . import views

    return views.described(request, **asked)


@csrf_exempt
@login_not_required
def nothing(request: HttpRequest, rest: str = "") -> HttpResponse:
    from . import views

    return views.nothing(request, rest)


urlpatterns = [
    path("Users", listed, {"kind": PEOPLE}, name="scim_users"),
    path("Users/<str:key>", one, {"kind": PEOPLE}),
    path("Groups", listed, {"kind": GROUPS}, name="scim_groups"),
    path("Groups/<str:key>", one, {"kind": GROUPS}),
    path("ServiceProviderConfig", described, {"what": "ServiceProviderConfig"}, name="scim_config"),
    path("ResourceTypes", described, {"what": "ResourceTypes"}),
    path("ResourceTypes/<str:key>", described, {"what": "ResourceTypes"}),
    path("Schemas", described, {"what": "Schemas"}),
    path("Schemas/<str:key>", described, {"what": "Schemas"}),
    path("", nothing),
    path("<path:rest>", nothing),
]
