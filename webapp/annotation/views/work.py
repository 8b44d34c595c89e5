"""The annotator's pages: what waits, and the workbench."""

from django.urls import URLPattern

urls: list[URLPattern] = []
