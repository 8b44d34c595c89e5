"""Pages of annotation. The pages of the manager, the annotator and the reviewer are listed in their own modules."""

from django.urls import URLPattern

from .people import views as people
from .projects import task_views
from .projects import views as projects
from .publishing import views as answers
from .review import views as review
from .work import views as work

urlpatterns: list[URLPattern] = [
    *projects.urls,
    *people.urls,
    *task_views.urls,
    *work.urls,
    *review.urls,
    *answers.urls,
]
