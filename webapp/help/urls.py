"""Addresses of the help."""

from django.urls import path
from django.views.generic import RedirectView

from . import views

urlpatterns = [
    path("help", views.index, name="help"),
    path("help/", RedirectView.as_view(pattern_name="help"), name="help_list"),
    path("help/<path:slug>.md", views.source, name="help_source"),
    path("help/<path:slug>", views.page, name="help_page"),
]
