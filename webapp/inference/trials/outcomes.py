"""The path by which a model is trained, and what its trial has measured. Both are read from its facts, for pages and checks."""

from collections.abc import Collection
from typing import Any

from trainer.config.architectures import KNOWN, path_of, unknown
from trainer.contracts.plurals import with_noun

from ..models import RegisteredModel

TRIAL = "trial"
"""The key of the facts for the outcome of the trial: see `trainer.weights.trial`."""
STATES = ("fits", "refused", "not_tried")
BEGUN = {"state": "not_tried", "reason": "its trial has begun and has not ended"}
"""Written before a trial begins: a trial that kills its worker is then not begun again and again."""


def to_try(model: RegisteredModel) -> bool:
    """Whether a trial can find something out: the model is whole, lies here, writes text, and its architecture is not known."""
    whole = model.source == RegisteredModel.Source.LOCAL and model.format == RegisteredModel.Format.HF
    kind = model.facts.get("model_type")
    return whole and model.head == RegisteredModel.Head.LM and kind is not None and path_of(kind) == "generic"


def may_try_again(model: RegisteredModel) -> bool:
    """Whether another trial may end otherwise: the last one was refused, for the server may have changed, or could not be made."""
    state = model.facts.get(TRIAL, {}).get("state")
    return state in ("refused", "not_tried") and model.archived_at is None and to_try(model)


def unscorable(model: RegisteredModel, heads: Collection[str]) -> str:
    """The reason why the model cannot be loaded with a head that scores; empty if it can, or if `heads` has no such head."""
    kind = model.facts.get("model_type")
    return unknown(kind) if kind is not None and RegisteredModel.Head.SCALAR in heads else ""


def untrainable(model: RegisteredModel) -> str:
    """The reason why no run can load the model; empty if that is not known. Of a model of a hub nothing is known before it is fetched."""
    kind = model.facts.get("model_type")
    if kind is None or path_of(kind) == "grouped":
        return ""
    if model.head == RegisteredModel.Head.SCALAR:
        return unknown(kind)
    trial = _trial(model)
    return str(trial.get("reason", "")) if trial.get("state") == "refused" else ""


def outcome_text(model: RegisteredModel) -> str:
    """A text for the model's page; empty for a model that scores texts, and for one of which nothing is known."""
    kind = model.facts.get("model_type")
    if kind is None or model.head == RegisteredModel.Head.SCALAR:
        return ""
    if path_of(kind) == "grouped":
        return f"The path of {', '.join(KNOWN[:-1])} and {KNOWN[-1]}: attention by groups."
    trial = _trial(model)
    state, reason = trial.get("state"), trial.get("reason", "")
    if state == "fits":
        return (
            f"The generic path, in the model's own attention. Tried here: over {with_noun(int(trial['tokens']), 'tokens')} packed and padded "
            f"log-probabilities differ by at most {trial['largest']:.2g}; {with_noun(int(trial['adapters']), 'layers')} took an adapter; the "
            f"sampler's differ from the trainer's by {trial['sampler']:.2g} on average."
        )
    if state == "refused":
        return f"It cannot be trained: {reason}"
    if state == "not_tried":
        return f"The generic path. It was not tried here: {reason}. Each run tries it before it trains."
    return "The generic path. It has not been tried here yet; each run tries it before it trains."


def _trial(model: RegisteredModel) -> dict[str, Any]:
    """The model's own trial, or that of its base, which has the same architecture."""
    found = model.facts.get(TRIAL)
    if isinstance(found, dict):
        return found
    return _trial(model.base) if model.base is not None else {}
