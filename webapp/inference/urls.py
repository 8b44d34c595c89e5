"""Pages of models and endpoints, listed by their rooms."""

from .endpoints import views as endpoints
from .promotion import views as promotion
from .registry import views as registry

urlpatterns = [*registry.urls, *promotion.urls, *endpoints.urls]
