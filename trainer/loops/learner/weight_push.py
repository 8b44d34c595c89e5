"""Sends weights from the learner to the sampler, and proves that they arrived."""

from collections.abc import Iterator

from torch import Tensor

from trainer.config import OnPolicyConfig
from trainer.inference.checksum import Checksum
from trainer.inference.quantised import as_held
from trainer.inference.sampling import Sampler

from ..session.errors import RunFailed
from .learner import Learner


class WeightPusher:
    """Gives the sampler merged weights, or adapters if it can hold them."""

    def __init__(self, config: OnPolicyConfig, learner: Learner, sampler: Sampler) -> None:
        self._config, self._learner, self._sampler = config, learner, sampler

    def push(self, version: int) -> str:
        """The checksum of what the sampler now holds. Raises RunFailed if that is not what was sent."""
        if getattr(self._sampler, "follows", False):  # the sampler reads the same memory: nothing is sent
            return self._sampler.load_weights(self.weights(), version)
        pushed = Checksum()
        held = self._sampler.load_weights(pushed.watching(self.weights()), version)
        if held != pushed.hexdigest():
            raise RunFailed(
                f"the weights of step {version} did not reach the sampler: their checksum is {pushed.hexdigest()}, that of "
                f"what the sampler holds {held}"
            )
        return held

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The learner's own tensors, not copies; rounded ones for a sampler of whole numbers."""
        sampler = self._config.sampler
        if sampler.push == "merged":
            merged = self._learner.merged_weights()
            rounded = getattr(self._sampler, "rounded", None)
            return as_held(merged, rounded) if rounded else merged
        # vLLM keeps adapters in the precision of its model.
        return self._learner.adapter_weights("float32" if sampler.kind == "local" else self._config.model.dtype)
