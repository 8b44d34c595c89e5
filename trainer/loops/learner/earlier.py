"""A model that was: the learner with the weights that it had earlier, as a teacher of what it is now."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .learner import Learner, Marked, Outlook


class Earlier:
    """It takes no memory of a model: its weights lie in this machine's, and the learner holds them while it is asked."""

    def __init__(self, learner: Learner, policy: Mapping[str, Tensor]) -> None:
        self._learner, self._policy = learner, policy

    @torch.no_grad()
    def measure(self, rows: Sequence[Marked], temperature: float, keys: Sequence[str] = ()) -> list[Tensor]:
        with self._learner.holding(self._policy):
            return [scored.logp_T for scored in self._learner.measure(rows, temperature)]

    @torch.no_grad()
    def outlook(self, rows: Sequence[Marked]) -> Outlook:
        with self._learner.holding(self._policy):
            hidden_MD, head_VD = self._learner.outlook(rows)
            # where all weights are trained, the head is the learner's own again in a moment
            return Outlook(hidden_MD, head_VD if self._learner.adapted is not None else head_VD.clone())
