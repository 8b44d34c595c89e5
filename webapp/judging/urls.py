"""Pages of judges, listed by their rooms."""

from .editor import views as editor
from .judges import views as judges
from .suggestions import views as suggestions
from .trials import views as trials
from .verdicts import views as verdicts

urlpatterns = [*editor.urls, *judges.urls, *trials.urls, *suggestions.urls, *verdicts.urls]
