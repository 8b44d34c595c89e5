"""Annotation over the REST API."""

from .people.api import router as people
from .projects.api import router as projects
from .projects.task_api import router as tasks
from .publishing.api import router as answers
from .review.api import router as review
from .work.api import router as queue
from .work.rubric_api import router as rubrics
from .work.workbench_api import router as work

# the busiest first: addresses are compared one after another
routers = (queue, projects, people, tasks, work, rubrics, review, answers)
