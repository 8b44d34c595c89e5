"""The calculator of the objectives' pages. It needs torch, which neither web nor workers load: a worker starts
`python -m trainer objective` for a moment, and the page asks until the answer is there.

A calculation is worth nothing tomorrow, so it lives in the cache for some minutes and in no table.
"""

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.cache import cache

from trainer.config.objectives.catalogue import CATALOGUE
from webapp.accounts.models import Membership
from webapp.core.background.children import environment
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.limits import seconds_to_wait
from webapp.core.tasks import enqueue

LONGEST = 20_000  # characters of a record: enough to try something out, too few to keep a machine busy
PER_MINUTE = 20
KEPT_S = 600
TIMEOUT_S = 60
PATIENCE_S = 90  # without an answer for this long, the page stops asking
_ONE_AT_A_TIME = threading.Lock()  # each takes a core for some seconds, and a worker's threads are for other things


@dataclass(frozen=True)
class Calculation:
    """`result` is what the calculator printed; else `error` says what is wrong; neither: not done yet."""

    id: str
    workspace: int
    name: str
    record: str
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def done(self) -> bool:
        return bool(self.result or self.error)


def start(membership: Membership, name: str, record: str) -> Calculation:
    """Raises Invalid at `record` when it is no JSON object, Problem 429 for who asks too often."""
    if wait := seconds_to_wait(f"calculator:{membership.user_id}", PER_MINUTE):
        raise Problem(f"Too many calculations; try again in {wait} s.", code="too_many_requests", status=429)
    if len(record) > LONGEST:
        raise Invalid("The record is too long.", {"record": f"has more than {LONGEST:,} characters"})
    try:
        parsed = json.loads(record)
    except (ValueError, RecursionError) as error:
        raise Invalid("The record is not JSON.", {"record": f"is not JSON: {error}"}) from error
    if not isinstance(parsed, dict):
        raise Invalid("The record is not a JSON object.", {"record": "must be one JSON object: { ... }"})
    made = Calculation(uuid4().hex, membership.workspace_id, name, record)
    _keep(made)
    enqueue("workers.objectives.calculate", made.id)
    return made


def find(membership: Membership, calculation_id: str) -> Calculation | None:
    """One of the membership's workspace; None once it is forgotten."""
    found = _read(calculation_id)
    return found if found and found.workspace == membership.workspace_id else None


def carry_out(calculation_id: str) -> bool:
    """Called by a worker. False: another calculation is running, try again in a moment."""
    calculation = _read(calculation_id)
    if calculation is None or calculation.done or calculation.name not in CATALOGUE:
        return True
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        return False
    try:
        result, error = _calculate(calculation)
    finally:
        _ONE_AT_A_TIME.release()
    _keep(Calculation(**{**asdict(calculation), "result": result, "error": error}))
    return True


def _calculate(calculation: Calculation) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", "trainer", "objective", calculation.name, "-"]
    try:
        done = subprocess.run(
            command,
            input=calculation.record,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=settings.BASE_DIR,
            env=environment(),
        )
    except subprocess.TimeoutExpired:
        return {}, f"The calculator did not answer within {TIMEOUT_S} s: the machine is busy. Try again."
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    said = done.stderr.strip().splitlines() or ["nothing"]
    if done.returncode == 2:
        return {}, said[-1].removeprefix("error: ")
    if "No module named" in said[-1]:
        return (
            {},
            "The workers of this installation have no torch. Run the command below where the trainer is installed.",
        )
    return {}, f"The calculator failed: {said[-1]}"


def _key(calculation_id: str) -> str:
    return f"calculation:{calculation_id}"


def _keep(calculation: Calculation) -> None:
    cache.set(_key(calculation.id), asdict(calculation), KEPT_S)


def _read(calculation_id: str) -> Calculation | None:
    found = cache.get(_key(calculation_id))
    return Calculation(**found) if found else None
