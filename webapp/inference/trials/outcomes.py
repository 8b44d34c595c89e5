"""By which path a model is trained, and what its trial has measured: read from its facts, for pages and checks."""

from collections.abc import Collection
from typing import Any

from trainer.config.architectures import KNOWN, path_of, unknown
from trainer.contracts.counted import counted

from ..models import RegisteredModel

TRIAL = "trial"
"""The key of the facts under which the trial's outcome stands: see `trainer.weights.trial`."""
STATES = ("fits", "refused", "not_tried")
BEGUN = {"state": "not_tried", "reason": "its trial has begun and has not ended"}
"""Written before a trial begins: one that takes its worker along is not begun again by itself, time after time."""


def to_try(model: RegisteredModel) -> bool:
    """Whether there is something to find out: a whole model that writes text, here, of an architecture that is not known."""
    whole = model.source == RegisteredModel.Source.LOCAL and model.format == RegisteredModel.Format.HF
    kind = model.facts.get("model_type")
    return whole and model.head == RegisteredModel.Head.LM and kind is not None and path_of(kind) == "generic"


def may_try_again(model: RegisteredModel) -> bool:
    """Whether its trial is over and has left a question open, or may come out otherwise where the server has changed."""
    state = model.facts.get(TRIAL, {}).get("state")
    return state in ("refused", "not_tried") and model.archived_at is None and to_try(model)


def unscorable(model: RegisteredModel, heads: Collection[str]) -> str:
    """Why it cannot be loaded with a head that scores; empty where it can, and where a place for these heads asks for none."""
    kind = model.facts.get("model_type")
    return unknown(kind) if kind is not None and RegisteredModel.Head.SCALAR in heads else ""


def untrainable(model: RegisteredModel) -> str:
    """Why no run can load it; empty where that is not known. A hub's model says nothing of itself before it is fetched."""
    kind = model.facts.get("model_type")
    if kind is None or path_of(kind) == "grouped":
        return ""
    if model.head == RegisteredModel.Head.SCALAR:
        return unknown(kind)
    trial = _trial(model)
    return str(trial.get("reason", "")) if trial.get("state") == "refused" else ""


def words(model: RegisteredModel) -> str:
    """For the model's page; empty for what scores texts and for what nothing is known of."""
    kind = model.facts.get("model_type")
    if kind is None or model.head == RegisteredModel.Head.SCALAR:
        return ""
    if path_of(kind) == "grouped":
        return f"The path of {', '.join(KNOWN[:-1])} and {KNOWN[-1]}: attention by groups."
    trial = _trial(model)
    state, reason = trial.get("state"), trial.get("reason", "")
    if state == "fits":
        return (
            f"The generic path, in the model's own attention. Tried here: over {counted(int(trial['tokens']), 'tokens')} packed and padded "
            f"log-probabilities differ by at most {trial['largest']:.2g}; {counted(int(trial['adapters']), 'layers')} took an adapter; the "
            f"sampler's differ from the trainer's by {trial['sampler']:.2g} on average."
        )
    if state == "refused":
        return f"It cannot be trained: {reason}"
    if state == "not_tried":
        return f"The generic path. It was not tried here: {reason}. Each run tries it before it trains."
    return "The generic path. It has not been tried here yet; each run tries it before it trains."


def _trial(model: RegisteredModel) -> dict[str, Any]:
    """Its own, or that of what it was trained from, whose architecture it has."""
    found = model.facts.get(TRIAL)
    if isinstance(found, dict):
        return found
    return _trial(model.base) if model.base is not None else {}
