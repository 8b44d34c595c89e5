"""The reviewer's pages: agreement, consolidation, comments."""

from django.urls import URLPattern

urls: list[URLPattern] = []
