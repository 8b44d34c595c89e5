"""Projects: making, opening, pausing, guidelines, people, invitations."""

from ninja import Router

router = Router(tags=["annotation"])
