"""Me, my workspaces, its members, my tokens: one module for each room."""

from ninja import Router

from .members import api as members
from .tokens import api as tokens
from .workspaces import api as workspaces

router = Router(tags=["accounts"])
for _part in (workspaces, members, tokens):
    router.add_router("", _part.router)
