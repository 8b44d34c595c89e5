"""Addresses of the SCIM service; names of resources are the protocol's."""

from django.urls import path

from . import views

urlpatterns = [
    path("Users", views.listed, {"kind": views.PEOPLE}, name="scim_users"),
    path("Users/<str:key>", views.one, {"kind": views.PEOPLE}),
    path("Groups", views.listed, {"kind": views.GROUPS}, name="scim_groups"),
    path("Groups/<str:key>", views.one, {"kind": views.GROUPS}),
    path("ServiceProviderConfig", views.described, {"what": "ServiceProviderConfig"}, name="scim_config"),
    path("ResourceTypes", views.described, {"what": "ResourceTypes"}),
    path("ResourceTypes/<str:key>", views.described, {"what": "ResourceTypes"}),
    path("Schemas", views.described, {"what": "Schemas"}),
    path("Schemas/<str:key>", views.described, {"what": "Schemas"}),
    path("", views.nothing),
    path("<path:rest>", views.nothing),
]
