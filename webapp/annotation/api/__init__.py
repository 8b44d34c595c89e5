"""Annotation over the REST API."""

from .projects import router as projects
from .queue import router as queue
from .review import router as review
from .rubrics import router as rubrics

routers = (projects, queue, review, rubrics)
