"""A JSON record becomes the tensors of an objective, or an error that names the field.

Rows are responses and may differ in length; they are padded on the right with mask 0. If the mask is 1, a value is needed
and must be finite; elsewhere it may be absent, null or anything. Everything is float64.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .batch import ObjectiveBatch, ObjectiveError, PairBatch, ScoreBatch

TOKEN_FIELDS = ("logp", "logp_old", "logp_roll", "logp_ref", "logp_teacher")
RESPONSE_FIELDS = ("rewards", "rewards_greedy", "advantages")
KNOWN = (*TOKEN_FIELDS, "mask", *RESPONSE_FIELDS, "groups", "chosen", "rejected", "margins", "params")
_SIDE_FIELDS = ("logp", "logp_ref", "mask")


@dataclass(frozen=True)
class RecordedResponses:
    """Padded rows of a record: `tokens[name]` (B, T), `mask` (B, T), `lengths` the rows' own lengths."""

    tokens: dict[str, Tensor]
    mask: Tensor
    lengths: list[int]

    def unpad(self, values: Tensor) -> list[list[float]]:
        """Rows of the lengths that `logp` was given with; -0.0 becomes 0.0."""
        return [row[:n] for row, n in zip((values + 0.0).tolist(), self.lengths, strict=True)]


def responses(record: dict[str, Any], where: str = "") -> RecordedResponses:
    """The token fields of a record. `where` stands before field names in errors."""
    rows = {name: _rows(record[name], where + name) for name in TOKEN_FIELDS if record.get(name) is not None}
    if "logp" not in rows:
        raise ObjectiveError(f"{where}logp", "missing; expected a list of responses, each a list of token values")
    if not rows["logp"]:
        raise ObjectiveError(f"{where}logp", "has no responses")
    lengths = [len(row) for row in rows["logp"]]
    if record.get("mask") is None:
        mask_rows: list[list[Any]] = [[1] * n for n in lengths]
    else:
        mask_rows = _rows(record["mask"], f"{where}mask")
    for name, field_rows in {**rows, "mask": mask_rows}.items():
        if len(field_rows) != len(lengths):
            raise ObjectiveError(where + name, f"has {len(field_rows)} responses, {where}logp has {len(lengths)}")
    width = max(len(row) for field_rows in (*rows.values(), mask_rows) for row in field_rows)
    mask = _mask(mask_rows, width, f"{where}mask")
    tokens = {name: _values(field_rows, mask, where + name) for name, field_rows in rows.items()}
    if record.get("mask") is None:
        _check_same_lengths(rows, lengths, where)
    return RecordedResponses(tokens, mask, lengths)


def column(record: dict[str, Any], name: str, count: int) -> Tensor | None:
    """(B,) one number per response; null becomes NaN: missing. None if the field is absent."""
    values = record.get(name)
    if values is None:
        return None
    if not isinstance(values, list):
        raise ObjectiveError(name, f"expected a list of {count} numbers, one per response")
    if len(values) != count:
        raise ObjectiveError(name, f"has {len(values)} values for {count} responses")
    out = [math.nan if v is None else _number(v, f"{name}[{i}]") for i, v in enumerate(values)]
    return torch.tensor(out, dtype=torch.float64)


def groups(record: dict[str, Any], count: int) -> Tensor:
    """(B,) prompt ids, renumbered. Absent: all responses answer one prompt. Ids are integers or strings."""
    values = record.get("groups")
    if values is None:
        return torch.zeros(count, dtype=torch.long)
    if not isinstance(values, list) or len(values) != count:
        found = len(values) if isinstance(values, list) else type(values).__name__
        raise ObjectiveError("groups", f"expected a list of {count} prompt ids, one per response; found {found}")
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ObjectiveError(f"groups[{i}]", f"expected an integer or a string, found {value!r}")
    ids = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return torch.tensor([ids[value] for value in values], dtype=torch.long)


def policy_batch(record: dict[str, Any], rows: RecordedResponses, advantages_B: Tensor | None) -> ObjectiveBatch:
    """The record of a policy objective; `logp` carries the gradient."""
    count = len(rows.lengths)
    return ObjectiveBatch(
        logp_BT=rows.tokens["logp"].requires_grad_(),
        mask_BT=rows.mask,
        advantages_B=advantages_B,
        groups_B=groups(record, count),
        rewards_B=column(record, "rewards", count),
        logp_old_BT=rows.tokens.get("logp_old"),
        logp_roll_BT=rows.tokens.get("logp_roll"),
        logp_ref_BT=rows.tokens.get("logp_ref"),
        logp_teacher_BT=rows.tokens.get("logp_teacher"),
    )


def score_batch(record: dict[str, Any]) -> ScoreBatch:
    """`chosen` and `rejected` are scores, one per pair; `margins`, if present, are the margins of the pairs.

    A side may be a record {"rewards": [..]}, as the sides of DPO are records. If `rewards` holds the
    scores of all responses, `chosen` and `rejected` are their row numbers.
    """
    scores = record.get("rewards")
    sides = {}
    for side in ("chosen", "rejected"):
        values = record.get(side)
        if isinstance(values, dict) and values.keys() == {"rewards"}:
            values = values["rewards"]
        if not isinstance(values, list) or not values:
            raise ObjectiveError(side, "expected a list of scores, one per pair")
        if isinstance(scores, list):
            values = [scores[i] for i in row_numbers(values, len(scores), side, "rewards")]
        sides[side] = torch.tensor([_number(v, f"{side}[{i}]") for i, v in enumerate(values)], dtype=torch.float64)
    if len(sides["chosen"]) != len(sides["rejected"]):
        raise ObjectiveError("rejected", f"has {len(sides['rejected'])} scores for {len(sides['chosen'])} chosen")
    margins = column(record, "margins", len(sides["chosen"]))
    if margins is not None and margins.isnan().any():
        raise ObjectiveError("margins", "a margin is null; every pair needs one")
    return ScoreBatch(sides["chosen"].requires_grad_(), sides["rejected"].requires_grad_(), margins)


def pair_batch(chosen: RecordedResponses, rejected: RecordedResponses) -> PairBatch:
    """The record of DPO."""
    return PairBatch(
        chosen_PT=chosen.tokens["logp"],
        rejected_PT=rejected.tokens["logp"],
        mask_chosen_PT=chosen.mask,
        mask_rejected_PT=rejected.mask,
        ref_chosen_PT=chosen.tokens["logp_ref"],
        ref_rejected_PT=rejected.tokens["logp_ref"],
    )


def pair_sides(record: dict[str, Any]) -> tuple[RecordedResponses, RecordedResponses]:
    """Both sides of the pairs, each its own record {"logp", "logp_ref", "mask"}.

    Four spellings are read: `chosen` as such a record; as a list of them, one per response; fields that hold both sides
    ({"logp": {"chosen": ..}}); and, if `logp` holds all responses, `chosen` as their row numbers.
    """
    found = []
    for side in ("chosen", "rejected"):
        part = _side(record, side)
        unknown = [key for key in part if key not in _SIDE_FIELDS]
        if unknown:
            raise ObjectiveError(f"{side}.{unknown[0]}", f"unknown field; known: {', '.join(_SIDE_FIELDS)}")
        rows = responses(part, f"{side}.")
        if "logp_ref" not in rows.tokens:
            raise ObjectiveError(f"{side}.logp_ref", "missing; dpo compares with a reference")
        found.append(rows)
    if len(found[0].lengths) != len(found[1].lengths):
        raise ObjectiveError("rejected", f"has {len(found[1].lengths)} responses for {len(found[0].lengths)} chosen")
    return found[0], found[1]


def names_rows(record: dict[str, Any]) -> bool:
    """Whether the sides of the pairs are row numbers of `logp`."""
    return isinstance(record.get("logp"), list)


def row_numbers(values: Any, count: int, side: str, of: str) -> list[int]:
    """`values`, checked to be rows of the field `of`, which has `count`."""
    if not isinstance(values, list):
        raise ObjectiveError(side, f"expected a list of rows of {of}, one per pair")
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            raise ObjectiveError(f"{side}[{i}]", f"expected a row of {of}, 0 to {count - 1}; found {value!r}")
    return values


def _side(record: dict[str, Any], side: str) -> dict[str, Any]:
    value = record.get(side)
    if names_rows(record):
        numbers = row_numbers(value, len(record["logp"]), side, "logp")
        fields = {name: _rows(record[name], name) for name in _SIDE_FIELDS if record.get(name) is not None}
        for name, rows in fields.items():
            if len(rows) != len(fields["logp"]):
                raise ObjectiveError(name, f"has {len(rows)} responses, logp has {len(fields['logp'])}")
        return {name: [rows[i] for i in numbers] for name, rows in fields.items()}
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        names = dict.fromkeys(key for part in value for key in part)
        return {key: [part.get(key) for part in value] for key in names}
    if isinstance(value, dict):
        return {key: _as_rows(part) for key, part in value.items()}
    if isinstance(record.get("logp"), dict):
        return {name: _as_rows(record[name].get(side)) for name in _SIDE_FIELDS if isinstance(record.get(name), dict)}
    raise ObjectiveError(side, 'expected {"logp": [[..]], "logp_ref": [[..]]}, or row numbers of logp')


def _as_rows(values: Any) -> Any:
    """The values as rows; a flat list of numbers has one value per response, a sum of log-probabilities."""
    if isinstance(values, list) and values and all(isinstance(v, int | float) for v in values):
        return [[v] for v in values]
    return values


def _rows(values: Any, name: str) -> list[list[Any]]:
    if not isinstance(values, list) or not all(isinstance(row, list) for row in values):
        raise ObjectiveError(name, "expected a list of responses, each a list of token values")
    return values


def _mask(rows: Sequence[Sequence[Any]], width: int, name: str) -> Tensor:
    out = torch.zeros(len(rows), width, dtype=torch.float64)
    for i, row in enumerate(rows):
        for t, value in enumerate(row):
            if not isinstance(value, int | float) or value not in (0, 1):
                raise ObjectiveError(f"{name}[{i}][{t}]", f"expected 0 or 1, found {value!r}")
            out[i, t] = value
    return out


def _values(rows: Sequence[Sequence[Any]], mask: Tensor, name: str) -> Tensor:
    """Padded values; the mask says which must be there."""
    out = torch.zeros_like(mask)
    for i, row in enumerate(rows):
        for t in range(mask.shape[1]):
            if mask[i, t] == 0:
                continue
            if t >= len(row) or row[t] is None:
                raise ObjectiveError(f"{name}[{i}][{t}]", "missing, although the mask counts this token")
            out[i, t] = _number(row[t], f"{name}[{i}][{t}]")
    return out


def _check_same_lengths(rows: dict[str, list[list[Any]]], lengths: list[int], where: str) -> None:
    for name, field_rows in rows.items():
        for i, row in enumerate(field_rows):
            if len(row) != lengths[i]:
                raise ObjectiveError(
                    f"{where}{name}[{i}]", f"has {len(row)} tokens, {where}logp has {lengths[i]}; give a mask"
                )


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ObjectiveError(name, f"expected a number, found {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ObjectiveError(name, f"expected a finite number, found {value!r}")
    return number
