"""Pages of evaluations, listed by their rooms."""

from .launch import views as launch
from .leaderboards import views as leaderboards
from .recordings import views as recordings
from .results import views as results
from .studies import views as studies

urlpatterns = [*leaderboards.urls, *launch.urls, *recordings.urls, *results.urls, *studies.urls]
