"""Every objective by name. Adding one: its module, its parameters in trainer/config/objectives.py, a line here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from trainer.config import objectives as knobs

from . import advantages
from .batch import ObjectiveResult
from .policy import grpo


@dataclass(frozen=True)
class Objective:
    """`loss` takes a record of responses (or pairs) and parameters; `needs` names the log-probabilities it reads."""

    name: str
    parameters: type[knobs.Parameters]
    loss: Callable[[Any, Any], ObjectiveResult]
    needs: tuple[str, ...] = ("logp_old",)

    def params(self, **overrides: Any) -> Any:
        """Checked parameters; None means the default. Raises ConfigInvalid."""
        return knobs.parse_parameters(self.parameters, overrides)

    def advantages(
        self, rewards_B: Tensor, groups_B: Tensor | None, params: Any, greedy_B: Tensor | None = None
    ) -> Tensor:
        """What goes into `ObjectiveBatch.advantages_B`: over whole groups, before any mini-batch is cut."""
        if isinstance(params, knobs.OaplParameters):
            return advantages.optimal_advantage(rewards_B, groups_B, beta1=params.beta1)
        return advantages.estimate(
            params.advantage, rewards_B, groups_B, greedy_B=greedy_B, ddof=params.std_ddof, eps=params.std_eps
        )


REGISTRY: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective("grpo", knobs.GrpoParameters, grpo.grpo),
        Objective("dr_grpo", knobs.DrGrpoParameters, grpo.grpo),
        Objective("dapo", knobs.DapoParameters, grpo.grpo),
        Objective("gspo", knobs.GspoParameters, grpo.gspo),
    )
}
