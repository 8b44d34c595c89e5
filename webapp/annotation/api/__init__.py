"""Annotation over the REST API."""

from .answers import router as answers
from .people import router as people
from .projects import router as projects
from .queue import router as queue
from .review import router as review
from .rubrics import router as rubrics
from .tasks import router as tasks
from .work import router as work

# the busiest first: addresses are compared one after another
routers = (queue, projects, people, tasks, work, rubrics, review, answers)
