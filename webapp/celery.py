"""The Celery app. Workers are named as strings: the web side never imports them."""

import os
import pkgutil
from pathlib import Path

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

WORKERS = Path(__file__).resolve().parent.parent / "workers"

app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = sorted(f"workers.{module.name}" for module in pkgutil.iter_modules([str(WORKERS)]))
