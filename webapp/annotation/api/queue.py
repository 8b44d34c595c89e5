"""What an annotator does: claim, draft, submit, skip, reopen, flag."""

from ninja import Router

router = Router(tags=["annotation"])
