"""Every objective by name. To add one, write its module, its knobs and its entry in trainer/config, and a line here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from trainer.config.objectives import knobs
from trainer.config.objectives.catalogue import CATALOGUE, ObjectiveEntry

from . import advantages, supervised
from .batch import ObjectiveResult
from .policy import grpo, icepop, sampler_ratio
from .preference import pairs


@dataclass(frozen=True)
class Objective:
    """`loss` takes a record (ObjectiveBatch; DPO PairBatch; Bradley-Terry ScoreBatch) and `params(...)`."""

    entry: ObjectiveEntry
    loss: Callable[[Any, Any], ObjectiveResult]

    @property
    def name(self) -> str:
        return self.entry.name

    def params(self, **overrides: Any) -> Any:
        """Checked parameters; None means the default. Raises ConfigInvalid with every problem, by field."""
        return knobs.parse_parameters(self.entry.parameters, overrides)

    def inputs(self, params: Any) -> tuple[str, ...]:
        """The fields that are read beside logp and mask with these parameters: `logp_old` and so on."""
        return self.entry.inputs(params)

    def advantages(
        self, rewards_B: Tensor, groups_B: Tensor | None, params: Any, greedy_B: Tensor | None = None
    ) -> Tensor:
        """The values of `ObjectiveBatch.advantages_B`: over whole groups, before any mini-batch is cut."""
        if isinstance(params, knobs.OaplParameters):
            return advantages.optimal_advantage(rewards_B, groups_B, beta1=params.beta1)
        return advantages.estimate(
            params.advantage, rewards_B, groups_B, greedy_B=greedy_B, ddof=params.std_ddof, eps=params.std_eps
        )


_LOSSES: dict[str, Callable[[Any, Any], ObjectiveResult]] = {
    "grpo": grpo.grpo,
    "dr_grpo": grpo.grpo,
    "dapo": grpo.grpo,
    "gspo": grpo.gspo,
    "icepop": icepop.icepop,
    "misc": icepop.misc,
    "double_sided": sampler_ratio.double_sided,
    "kimi": sampler_ratio.kimi,
    "oapl": sampler_ratio.oapl,
    "distill": icepop.distill,
    "dpo": pairs.dpo,
    "bradley_terry": pairs.bradley_terry,
    "sft": supervised.sft,
}

REGISTRY: dict[str, Objective] = {name: Objective(CATALOGUE[name], loss) for name, loss in _LOSSES.items()}
