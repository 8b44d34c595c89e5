"""Pages of annotation. Those of the manager, the annotator and the reviewer are listed in their own modules."""

from django.urls import URLPattern

from .views import answers, people, projects, review, tasks, work

urlpatterns: list[URLPattern] = [*projects.urls, *people.urls, *tasks.urls, *work.urls, *review.urls, *answers.urls]
