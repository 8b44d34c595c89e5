"""The records that go into an objective and come out of it.

Axes: B responses, T tokens (padded on the right), P preference pairs.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


class ObjectiveError(ValueError):
    """A batch that an objective cannot use. `field` names the part that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


@dataclass(frozen=True)
class ObjectiveBatch:
    """Responses with what was recorded about them. Frozen; totals left out are those of this batch.

    To accumulate gradients over micro-batches, build the whole step once (any log-probabilities will do) and cut it with
    `rows`: the totals stay those of the step, so the sum of the micro-batches' gradients is the gradient of the step.

    A response whose advantage is NaN has no reward (missing, not zero): it takes part in nothing and counts in no total.
    A response without a generated token stays a response: it counts in `total_sequences` and contributes no gradient.
    """

    logp_BT: Tensor
    """log pi of the policy being trained; carries the gradient."""
    mask_BT: Tensor
    """1 for tokens that the model generated; 0 for prompt, tool and padding tokens."""
    advantages_B: Tensor | None = None
    """The result of `Objective.advantages`, over whole groups. NaN: excluded."""
    groups_B: Tensor | None = None
    """Integer id of the prompt that each response answers; None: all answer one prompt."""
    logp_old_BT: Tensor | None = None
    """log pi of the trainer's policy at the start of the update."""
    logp_roll_BT: Tensor | None = None
    """log pi of the sampler, as recorded while sampling."""
    logp_ref_BT: Tensor | None = None
    logp_teacher_BT: Tensor | None = None
    rewards_B: Tensor | None = None
    """Kept for reports; objectives read `advantages_B`. NaN: missing."""
    total_sequences: float | None = None
    """Included responses of the step."""
    total_tokens: float | None = None
    """Generated tokens of the step's included responses."""
    total_groups: float | None = None
    """Prompts of the step with at least one included response; a mini-batch counts a prompt by the part of its group that it has."""
    group_tokens_B: Tensor | None = None
    """For each response, the generated tokens of all included responses to its prompt."""

    def __post_init__(self) -> None:
        self._check_shapes()
        mask_BT = self.mask_BT.detach().to(self.dtype)
        if self.advantages_B is not None:
            included_B = ~torch.isnan(self.advantages_B)
            mask_BT = mask_BT * included_B[:, None]
        else:
            included_B = torch.ones(mask_BT.shape[0], dtype=torch.bool, device=mask_BT.device)
        if self.groups_B is None:
            object.__setattr__(self, "groups_B", torch.zeros(len(included_B), dtype=torch.long, device=mask_BT.device))
        object.__setattr__(self, "mask_BT", mask_BT)
        self._fill_totals(included_B)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the arithmetic: float64 if the log-probabilities are float64, else float32."""
        return torch.float64 if self.logp_BT.dtype == torch.float64 else torch.float32

    @property
    def lengths_B(self) -> Tensor:
        """|y_i|: generated tokens of each response; 0 for excluded ones."""
        return self.mask_BT.sum(-1)

    def rows(self, index: Tensor, logp_BT: Tensor) -> "ObjectiveBatch":
        """The responses `index` as a micro-batch of this step, with freshly computed log-probabilities."""
        width = logp_BT.shape[1]

        def cut(value: Tensor | None) -> Tensor | None:
            if value is None:
                return None
            return value[index] if value.dim() == 1 else value[index, :width]

        parts = {name: cut(getattr(self, name)) for name in _PER_RESPONSE if name != "logp_BT"}
        return replace(self, logp_BT=logp_BT, **parts)  # type: ignore[arg-type]

    def need(self, name: str) -> Tensor:
        """The field `name` in the dtype of the arithmetic, without gradient, zero outside the mask."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise ObjectiveError(name.removesuffix("_BT").removesuffix("_B"), "missing; this objective needs it")
        value = value.detach().to(self.dtype)
        return torch.where(self.mask_BT > 0, value, 0.0) if value.dim() == 2 else torch.where(value.isnan(), 0.0, value)

    @property
    def logp(self) -> Tensor:
        """log pi in the dtype of the arithmetic, zero outside the mask (so that padding can hold anything)."""
        return torch.where(self.mask_BT > 0, self.logp_BT.to(self.dtype), 0.0)

    def _check_shapes(self) -> None:
        shape = self.logp_BT.shape
        if self.logp_BT.dim() != 2:
            raise ObjectiveError("logp", f"has shape {tuple(shape)}; expected responses x tokens")
        for name in _PER_RESPONSE:
            value = getattr(self, name)
            expected = shape if name.endswith("_BT") else shape[:1]
            if value is not None and value.shape != expected:
                short = name.removesuffix("_BT").removesuffix("_B")
                raise ObjectiveError(short, f"has shape {tuple(value.shape)}; expected {tuple(expected)} as logp")

    def _fill_totals(self, included_B: Tensor) -> None:
        if None not in (self.total_sequences, self.total_tokens, self.total_groups) and self.group_tokens_B is not None:
            return
        assert self.groups_B is not None  # noqa: S101 - set by __post_init__
        _, group_B = torch.unique(self.groups_B, return_inverse=True)
        count = int(group_B.max()) + 1 if len(group_B) else 0
        lengths_B = self.lengths_B
        tokens_of = torch.zeros(count, dtype=lengths_B.dtype, device=lengths_B.device).index_add_(0, group_B, lengths_B)
        found: dict[str, float | Tensor] = {
            "total_sequences": float(included_B.sum()),
            "total_tokens": float(lengths_B.sum()),
            "total_groups": float(len(torch.unique(group_B[included_B]))),
            "group_tokens_B": tokens_of[group_B],
        }
        for name, value in found.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)


_PER_RESPONSE = (
    "logp_BT",
    "mask_BT",
    "advantages_B",
    "groups_B",
    "logp_old_BT",
    "logp_roll_BT",
    "logp_ref_BT",
    "logp_teacher_BT",
    "rewards_B",
    "group_tokens_B",
)


@dataclass(frozen=True)
class PairBatch:
    """Preference pairs as log-probabilities of both responses' tokens; the two sides may differ in width."""

    chosen_PT: Tensor
    """log pi of the chosen responses' tokens; carries the gradient, as does `rejected_PT`."""
    rejected_PT: Tensor
    mask_chosen_PT: Tensor
    mask_rejected_PT: Tensor
    ref_chosen_PT: Tensor
    ref_rejected_PT: Tensor
    total_pairs: float | None = None
    """Pairs of the step, if this is a micro-batch of it."""
    margin_P: Tensor | None = None
    """The lead that the chosen response's reward should have."""
    weight_P: Tensor | None = None
    """The weight of each pair, such as the share of raters who gave this order; 1 if left out."""

    def __post_init__(self) -> None:
        for name in ("margin_P", "weight_P"):
            value = getattr(self, name)
            if value is not None and value.shape != self.chosen_PT.shape[:1]:
                raise ObjectiveError(name[:-2], f"has shape {tuple(value.shape)}; expected ({len(self.chosen_PT)},)")
        for side in ("chosen", "rejected"):
            shape = getattr(self, f"{side}_PT").shape
            for name in (f"mask_{side}_PT", f"ref_{side}_PT"):
                if getattr(self, name).shape != shape:
                    found = tuple(getattr(self, name).shape)
                    raise ObjectiveError(name[:-3], f"has shape {found}; expected {tuple(shape)} as {side}")
        if len(self.chosen_PT) != len(self.rejected_PT):
            raise ObjectiveError("rejected", f"has {len(self.rejected_PT)} responses for {len(self.chosen_PT)} chosen")


@dataclass(frozen=True)
class ScoreBatch:
    """Preference pairs as the scores of a reward model; both sides carry the gradient."""

    chosen_P: Tensor
    rejected_P: Tensor
    margin_P: Tensor | None = None
    """A margin per pair, added to the parameter's: larger for stronger preferences."""
    total_pairs: float | None = None
    """Pairs of the step, if this is a micro-batch of it."""
    weight_P: Tensor | None = None
    """The weight of each pair, such as the share of raters who gave this order; 1 if left out."""

    def __post_init__(self) -> None:
        for name in ("rejected_P", "margin_P", "weight_P"):
            value = getattr(self, name)
            if value is not None and value.shape != self.chosen_P.shape:
                raise ObjectiveError(
                    name[:-2], f"has shape {tuple(value.shape)}; expected {tuple(self.chosen_P.shape)}"
                )


@dataclass(frozen=True)
class ObjectiveResult:
    """`loss` is what is minimised. Everything else is detached."""

    loss: Tensor
    diagnostics: dict[str, Tensor] = field(default_factory=dict)
    """Scalars of this batch; NaN if undefined (no token left to average over)."""
    ratio: Tensor | None = None
    """(B, T) the ratio that the objective optimises: pi / pi_old, or pi / pi_roll if there is no pi_old."""
    weight: Tensor | None = None
    """(B, T) 0 if a token has no policy gradient (masked, clipped, dropped), else its constant factor."""
    advantages: Tensor | None = None
    """(B, T) the advantage of each token, if the objective itself makes it (distillation)."""
