"""The Django project: what people and scripts see."""

from .celery import app as celery_app

__all__ = ["celery_app"]
