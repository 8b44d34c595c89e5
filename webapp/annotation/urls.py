"""Pages of annotation. Those of the manager, the annotator and the reviewer are listed in their own modules."""

from django.urls import URLPattern

from .views import projects, review, work

urlpatterns: list[URLPattern] = [*projects.urls, *work.urls, *review.urls]
