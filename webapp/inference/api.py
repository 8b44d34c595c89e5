"""Models over the API, one module for each room."""

from ninja import Router

from .promotion import api as promotion
from .registry import api as registry
from .serving import api as serving

router = Router(tags=["models"])
for _part in (promotion, registry, serving):
    router.add_router("", _part.router)
