"""One objective on numbers of your own: `python -m trainer objective NAME FILE.json`, in float64.

FILE ("-": standard input) holds one object, absent fields left out, rows are responses of any lengths:

    {"logp": [[..]], "logp_old": [[..]], "logp_roll": [[..]], "logp_ref": [[..]], "logp_teacher": [[..]],
     "mask": [[..]], "rewards": [..], "groups": [..], "advantages": [..], "params": {..}}

`groups` are prompt ids; absent, all responses answer one prompt. A null reward is missing: its response takes part in
nothing. `advantages` replaces the estimator (for oapl it is r - V). `rewards_greedy` goes with advantage "remax".
dpo reads "chosen" and "rejected", each {"logp": [[..]], "logp_ref": [[..]], "mask": [[..]]} (a flat list is one sum per
pair), or row numbers of the fields above; bradley_terry reads them as lists of scores, each {"rewards": [..]}, or row
numbers of `rewards`, and optionally "margins", one per pair, which are added to the parameter.

Prints {"loss", "grad_logp", "advantages", "diagnostics"}: the loss is what is minimised, `grad_logp` its derivative in
the shape of logp (of chosen and rejected, for pairs), undefined values are null. Bad input: one line on standard error
that names the field, exit status 2.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.config.errors import ConfigInvalid
from trainer.config.objectives.knobs import Advantaged, OaplParameters

from . import reading
from .batch import ObjectiveError, ObjectiveResult
from .registry import REGISTRY, Objective

USAGE = "usage: python -m trainer objective NAME FILE.json"


def main(argv: Sequence[str]) -> int:
    """`argv` is [NAME, FILE]. Returns the exit status: 0, or 2 with one line on standard error."""
    if list(argv) in (["-h"], ["--help"]):
        print(f"{USAGE}\n\n{__doc__}\nNAME: {', '.join(REGISTRY)}")
        return 0
    try:
        if len(argv) != 2:
            raise ObjectiveError("arguments", f"expected NAME and FILE, found {len(argv)}; {USAGE}")
        found = calculate(argv[0], _read(argv[1]))
    except ObjectiveError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, allow_nan=False))
    return 0


def calculate(name: str, record: Any) -> dict[str, Any]:
    """The output of `main`, from the parsed record. Raises ObjectiveError."""
    if name not in REGISTRY:
        raise ObjectiveError("NAME", f"unknown objective {name!r}; known: {', '.join(REGISTRY)}")
    if not isinstance(record, dict):
        raise ObjectiveError("FILE", "expected one JSON object")
    for key in record:
        if key not in reading.KNOWN:
            raise ObjectiveError(key, f"unknown field; known: {', '.join(reading.KNOWN)}")
    objective = REGISTRY[name]
    params = _params(objective, record.get("params"))
    if name == "dpo":
        return _dpo(objective, record, params)
    if name == "bradley_terry":
        return _bradley_terry(objective, record, params)
    return _policy(objective, record, params)


def _policy(objective: Objective, record: dict[str, Any], params: Any) -> dict[str, Any]:
    rows = reading.responses(record)
    for name in objective.inputs(params):
        if name.startswith("logp_") and name not in rows.tokens and not _stands_in(objective, name, rows):
            raise ObjectiveError(name, f"missing; {objective.name} needs it with these parameters")
    advantages_B = _advantages(objective, record, params, len(rows.lengths))
    batch = reading.policy_batch(record, rows, advantages_B)
    result = objective.loss(batch, params)
    (grad,) = _gradients(result, batch.logp_BT)
    pushed: Any = None
    if result.advantages is not None:
        pushed = rows.unpad(result.advantages * batch.mask_BT)
    elif advantages_B is not None:
        pushed = [_null(v) for v in advantages_B.tolist()]
    return _output(result, rows.unpad(grad), pushed)


def _stands_in(objective: Objective, name: str, rows: reading.RecordedResponses) -> bool:
    """Whether `name` may replace the other field: Kimi's paper writes pi_old for the sampler's policy, so either is read."""
    return objective.name == "kimi" and name == "logp_roll" and "logp_old" in rows.tokens


def _dpo(objective: Objective, record: dict[str, Any], params: Any) -> dict[str, Any]:
    chosen, rejected = reading.pair_sides(record)
    leaves = [side.tokens["logp"].requires_grad_() for side in (chosen, rejected)]
    result = objective.loss(reading.pair_batch(chosen, rejected), params)
    grads = dict(zip(("chosen", "rejected"), _gradients(result, *leaves), strict=True))
    if not reading.names_rows(record):
        sides = {"chosen": chosen, "rejected": rejected}
        return _output(result, {side: sides[side].unpad(grad) for side, grad in grads.items()}, None)
    rows = [[0.0] * len(row) for row in record["logp"]]
    for side, grad in grads.items():
        for row, values in zip(record[side], grad.tolist(), strict=True):
            rows[row] = [a + b for a, b in zip(rows[row], values, strict=False)]
    return _output(result, rows, None)


def _bradley_terry(objective: Objective, record: dict[str, Any], params: Any) -> dict[str, Any]:
    batch = reading.score_batch(record)
    result = objective.loss(batch, params)
    chosen, rejected = _gradients(result, batch.chosen_P, batch.rejected_P)
    return _output(result, {"chosen": chosen.tolist(), "rejected": rejected.tolist()}, None)


def _advantages(objective: Objective, record: dict[str, Any], params: Any, count: int) -> Tensor | None:
    """The advantages of the record, else those of its rewards; None for objectives that have none."""
    given = reading.column(record, "advantages", count)
    if given is not None or not isinstance(params, Advantaged | OaplParameters):
        return given
    rewards = reading.column(record, "rewards", count)
    if rewards is None:
        raise ObjectiveError("rewards", f"missing; {objective.name} needs rewards or advantages")
    greedy = reading.column(record, "rewards_greedy", count)
    return objective.advantages(rewards, reading.groups(record, count), params, greedy)


def _params(objective: Objective, raw: Any) -> Any:
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ObjectiveError("params", "expected an object")
    try:
        return objective.params(**raw)
    except ConfigInvalid as error:
        problem = error.problems[0]
        raise ObjectiveError(f"params.{problem.path}", problem.message) from error


def _gradients(result: ObjectiveResult, *leaves: Tensor) -> tuple[Tensor, ...]:
    if not torch.isfinite(result.loss):
        raise ObjectiveError("logp", f"the loss is {result.loss.item()}: log-probabilities differ too much for a ratio")
    if not result.loss.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    grads = torch.autograd.grad(result.loss, leaves, allow_unused=True, materialize_grads=True)
    if not all(torch.isfinite(grad).all() for grad in grads):
        raise ObjectiveError("logp", "the gradient is not finite: log-probabilities differ too much for a ratio")
    return grads


def _output(result: ObjectiveResult, grad: Any, advantages: Any) -> dict[str, Any]:
    return {
        "loss": result.loss.item() + 0.0,  # no -0.0
        "grad_logp": grad,
        "advantages": advantages,
        "diagnostics": {name: _null(value.item()) for name, value in result.diagnostics.items()},
    }


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read(name: str) -> Any:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ObjectiveError("FILE", f"cannot read {name!r}: {getattr(error, 'strerror', None) or error}") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ObjectiveError("FILE", f"{name!r} is not JSON: {error}") from error
