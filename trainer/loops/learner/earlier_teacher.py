"""An earlier version of the learner as a teacher of the present one."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .learner import Learner, Marked, Outlook


class Earlier:
    """The learner with its earlier weights. They lie in the machine's memory, and the learner holds them while it is asked, so no second
    model takes memory.
    """

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
            # if all weights are trained, the learner's head changes back in a moment
            return Outlook(hidden_MD, head_VD if self._learner.adapted is not None else head_VD.clone())
