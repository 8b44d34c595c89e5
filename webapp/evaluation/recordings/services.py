"""Keeps the recorded verdicts and scores that people send in."""

import hashlib
import zlib
from dataclasses import asdict

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid

from ..launch.services import usable_name
from ..models import Recording
from . import lines

MAX_RECORDING = 50_000_000  # bytes


def store_recording(membership: Membership, name: str, content: bytes) -> Recording:
    """Keeps recorded verdicts of any format that `lines` knows, or recorded scores. Raises Invalid at `file`, naming lines.

    The same content again returns the existing recording.
    """
    if len(content) > MAX_RECORDING:
        raise Invalid("The file is too large.", {"file": f"is larger than {MAX_RECORDING // 10**6} MB"})
    digest = hashlib.sha256(content).hexdigest()
    known = Recording.objects.filter(workspace=membership.workspace, digest=digest).first()
    if known:
        return known
    read = lines.as_lines(name, content)
    facts = lines.facts(read)
    with transaction.atomic():
        row, made = Recording.objects.get_or_create(
            workspace=membership.workspace,
            digest=digest,
            defaults={
                "name": usable_name(name or facts.kind),
                **asdict(facts),
                "content": zlib.compress(read),
                "created_by": membership.user,
            },
        )
        if made:
            audit.record(membership, membership.user, "recording.stored", row, rows=facts.rows, judges=facts.judges)
    return row
