"""One model with two sets of trained weights: the trained role has the learner, and the role that speaks has the sampler."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from torch import Tensor

from trainer.config.recipes.alternating import ROLES, Role, TurnConfig
from trainer.inference.sampling import Sampler

from ..learner.learner import Learner
from ..learner.weight_push import WeightPusher

_OWNERS: Mapping[Role, str] = {"judge": "", "writer": "writer-"}
"""The prefix of the owner's name in a checkpoint: every checkpoint has a `policy` and an `optimizer`."""
_BEGAN = "began"
"""The owner, after a warm-up, of the weights with which the turns of a role began."""
Tensors = dict[str, dict[str, Tensor]]


class TwoRoles:
    """With adapters both roles share the base, and the exchanged tensors are small. Without adapters each role is a whole model, and the
    role that waits lies with its moments in the machine's memory.
    """

    def __init__(self, config: TurnConfig, learner: Learner, sampler: Sampler) -> None:
        self._learner = learner
        self._pusher = WeightPusher(config, learner, sampler)
        self.trained: Role = "judge"
        """The role whose weights the learner has."""
        self._waiting: Tensors = _copied(learner.state_tensors())
        """The tensors of the other role."""
        self._speaks: Role | None = None
        self._began: dict[Role, dict[str, Tensor]] = {}
        """After a warm-up: the weights of each role before its turns, to which the objective's KL refers."""

    def train(self, role: Role) -> None:
        """Give the learner the weights and moments of `role`."""
        if role == self.trained:
            return
        mine = _copied(self._learner.state_tensors())
        self._learner.load_state_tensors(self._waiting)
        self._waiting, self.trained = mine, role
        self._refer()

    def begin_turns(self) -> None:
        """End the warm-up: its moments are dropped, and the turns begin from the present weights of both roles."""
        self._learner.forget_moments()
        self._waiting["optimizer"] = {}
        if self._learner.refers:
            mine = _copied(self._learner.state_tensors())["policy"]
            self._began = {self.trained: mine, self._other: dict(self._waiting["policy"])}
            self._refer()

    def changed(self, role: Role) -> None:
        """Note that the sampler does not have the newest weights of `role`."""
        if self._speaks == role:
            self._speaks = None

    def sampler_has(self, role: Role) -> None:
        """Note that another object has given the sampler the newest weights of `role`."""
        self._speaks = role

    @contextmanager
    def speaking(self, role: Role, version: int) -> Iterator[None]:
        """While the block runs, the sampler has the newest weights of `role`; afterwards it has those that it had before."""
        before = self._speaks
        self._give(role, version)
        try:
            yield
        finally:
            if before is not None:
                self._give(before, version)

    @contextmanager
    def held(self, role: Role) -> Iterator[None]:
        """While the block runs, the learner has the weights of `role`; it must not be trained."""
        with nullcontext() if role == self.trained else self._learner.holding(self._waiting["policy"]):
            yield

    def state_tensors(self) -> Tensors:
        """All tensors of both roles that a checkpoint needs, by owner."""
        both = {self.trained: self._learner.state_tensors(), self._other: self._waiting}
        found = {f"{_OWNERS[role]}{owner}": tensors for role in ROLES for owner, tensors in both[role].items()}
        return found | {f"{_OWNERS[role]}{_BEGAN}": policy for role, policy in self._began.items()}

    def load_state_tensors(self, trained: Role, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Raises ValueError if the checkpoint is of another model, another adapter rank or another optimiser."""
        by_role: dict[Role, Tensors] = {
            role: {owner: dict(tensors[f"{_OWNERS[role]}{owner}"]) for owner in ("policy", "optimizer")}
            for role in ROLES
        }
        self.trained = trained
        self._learner.load_state_tensors(by_role[trained])
        self._waiting = by_role[self._other]
        if _BEGAN in tensors:
            self._began = {role: dict(tensors[f"{_OWNERS[role]}{_BEGAN}"]) for role in ROLES}
            self._refer()

    @property
    def _other(self) -> Role:
        return "writer" if self.trained == "judge" else "judge"

    def _refer(self) -> None:
        if self._began:
            self._learner.refer_to(self._began[self.trained])

    def _give(self, role: Role, version: int) -> None:
        if role != self._speaks:
            with self.held(role):
                self._pusher.push(version)
            self._speaks = role


def _copied(tensors: Mapping[str, Mapping[str, Tensor]]) -> Tensors:
    return {
        owner: {name: tensor.detach().to("cpu", copy=True) for name, tensor in held.items()}
        for owner, held in tensors.items()
    }
