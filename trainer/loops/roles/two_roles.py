"""One model, two sets of trained weights: who is trained has the model, and whoever speaks has the sampler."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from torch import Tensor

from trainer.config.recipes.alternating import ROLES, Role, TurnConfig
from trainer.inference.sampling import Sampler

from ..learner.learner import Learner
from ..learner.pushing import Pusher

_OWNERS: Mapping[Role, str] = {"judge": "", "writer": "writer-"}
"""Before the owner's name in a checkpoint: every checkpoint has a `policy` and an `optimizer`."""
_BEGAN = "began"
"""Owner, after a warm-up, of the weights with which the turns of a role began."""
Tensors = dict[str, dict[str, Tensor]]


class TwoRoles:
    """With adapters both share the base, and what is exchanged is small. Without them each role is a whole model, and the one
    that waits lies with its moments in this machine's memory."""

    def __init__(self, config: TurnConfig, learner: Learner, sampler: Sampler) -> None:
        self._learner = learner
        self._pusher = Pusher(config, learner, sampler)
        self.trained: Role = "judge"
        """Whose weights the learner has."""
        self._waiting: Tensors = _copied(learner.state_tensors())
        """Those of the other role."""
        self._speaks: Role | None = None
        self._began: dict[Role, dict[str, Tensor]] = {}
        """After a warm-up: what each role was before its turns, which is what the objective holds it to."""

    def train(self, role: Role) -> None:
        """From here on the learner has the weights and moments of `role`."""
        if role == self.trained:
            return
        mine = _copied(self._learner.state_tensors())
        self._learner.load_state_tensors(self._waiting)
        self._waiting, self.trained = mine, role
        self._refer()

    def begin_turns(self) -> None:
        """The warm-up is over: its moments are forgotten, and what both roles are now is what their turns begin from."""
        self._learner.forget_moments()
        self._waiting["optimizer"] = {}
        if self._learner.refers:
            mine = _copied(self._learner.state_tensors())["policy"]
            self._began = {self.trained: mine, self._other: dict(self._waiting["policy"])}
            self._refer()

    def changed(self, role: Role) -> None:
        """The weights of this role are others than the sampler has."""
        if self._speaks == role:
            self._speaks = None

    def sampler_has(self, role: Role) -> None:
        """Somebody else has given the sampler this role's newest weights."""
        self._speaks = role

    @contextmanager
    def speaking(self, role: Role, version: int) -> Iterator[None]:
        """Meanwhile the sampler has this role's newest weights, afterwards those that it had before."""
        before = self._speaks
        self._give(role, version)
        try:
            yield
        finally:
            if before is not None:
                self._give(before, version)

    @contextmanager
    def held(self, role: Role) -> Iterator[None]:
        """Meanwhile the learner has the weights of `role`; it must not be trained."""
        with nullcontext() if role == self.trained else self._learner.holding(self._waiting["policy"]):
            yield

    def state_tensors(self) -> Tensors:
        """Everything of both that a checkpoint needs, by owner."""
        both = {self.trained: self._learner.state_tensors(), self._other: self._waiting}
        found = {f"{_OWNERS[role]}{owner}": tensors for role in ROLES for owner, tensors in both[role].items()}
        return found | {f"{_OWNERS[role]}{_BEGAN}": policy for role, policy in self._began.items()}

    def load_state_tensors(self, trained: Role, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Raises ValueError where the checkpoint is of another model, another adapter rank or another optimiser."""
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
