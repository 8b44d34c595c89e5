"""The API of accounts: the person who asks, their workspaces, members and tokens. Each room has a module."""

from ninja import Router

from .members import api as members
from .tokens import api as tokens
from .workspaces import api as workspaces

router = Router(tags=["accounts"])
for _part in (workspaces, members, tokens):
    router.add_router("", _part.router)
