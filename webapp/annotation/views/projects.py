"""The manager's pages: projects, their form, progress, people, guidelines."""

from django.urls import URLPattern

urls: list[URLPattern] = []
