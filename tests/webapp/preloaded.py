"""Loads Django and the apps of the product. The process that forks workers imports this once. It opens no connection, because forked
processes would share it."""

import gc
from importlib import import_module

import django

django.setup()
for name in (
    "annotation.jobs.runner",
    "annotation.publishing.services",
    "annotation.review.services",
    "datasets.ingest.services",
):
    import_module(f"webapp.{name}")
gc.freeze()
