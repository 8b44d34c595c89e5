"""Trained parameters in float32 for a model that computes in bfloat16.

A bfloat16 number has eight bits of precision: an update of less than 1/512 of a weight rounds away, and usual learning
rates make only such updates. So the optimiser works on float32 copies, gradients of all passes are added up in float32,
and the model's weights are the rounded copies. Autocast would also work, but then the trainer's weights are not the
bfloat16 weights that the sampler runs, and every pass would read the model in float32.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn


class Masters:
    """Float32 copies of the trained parameters. A parameter that is float32 or wider is its own master."""

    def __init__(self, weights: Mapping[str, nn.Parameter]) -> None:
        self.weights = dict(weights)
        """The weights that the model computes with."""
        self.parameters = {name: _master(weight) for name, weight in weights.items()}
        self._pairs = [(self.parameters[name], weight) for name, weight in weights.items()]
        self._pairs = [(master, weight) for master, weight in self._pairs if master is not weight]
        for master, weight in self._pairs:
            weight.register_post_accumulate_grad_hook(_adder(master))

    def drop_gradients(self) -> None:
        for master in self.parameters.values():
            master.grad = None

    def complete_gradients(self) -> None:
        """Set missing gradients to 0, so that the optimiser's moments keep fading."""
        for master in self.parameters.values():
            if master.grad is None:
                master.grad = torch.zeros_like(master)

    @torch.no_grad()
    def publish(self) -> None:
        """Copy the masters to the weights; called after every change of the masters."""
        for master, weight in self._pairs:
            weight.copy_(master)


def _master(weight: nn.Parameter) -> nn.Parameter:
    if torch.promote_types(weight.dtype, torch.float32) == weight.dtype:
        return weight
    return nn.Parameter(weight.detach().float())


def _adder(master: nn.Parameter) -> Callable[[Tensor], None]:
    """A hook that adds a weight's gradient to its master's and frees it, once a backward pass has made it."""

    def add(weight: Tensor) -> None:
        assert weight.grad is not None  # noqa: S101 - the hook runs because there is one
        if master.grad is None:
            master.grad = weight.grad.to(master.dtype)
        else:
            master.grad += weight.grad
        weight.grad = None

    return add
