"""Agreement, consolidation, answers out."""

from ninja import Router

router = Router(tags=["annotation"])
