"""Annotation over the REST API."""

from .projects import router as projects
from .queue import router as queue
from .review import router as review
from .rubrics import router as rubrics
from .work import router as work

routers = (projects, queue, work, rubrics, review)
