"""Optimisers by name, each over the parameters that suit it, with one learning rate and one set of named state tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from trainer.config.sections.common import Optim

from .sharding import stored_share, whole


class Optimizers:
    """`adamw`: AdamW for everything. `muon`: Muon for the matrices of the layers, AdamW for the rest.

    Muon (Jordan et al., 2024) makes the momentum of a matrix orthogonal. Embeddings and head are matrices too, but their rows
    are looked up and not multiplied through, so AdamW updates them, and norms and biases too. Muon's steps are scaled to
    the size of AdamW's (Liu et al., 2025, section 2.2), so that one learning rate serves both.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], config: Optim) -> None:
        self._parameters = parameters
        matrices = [name for name in parameters if config.optimizer == "muon" and _is_layer_matrix(name, parameters)]
        rest = [parameter for name, parameter in parameters.items() if name not in matrices]
        self._parts: list[torch.optim.Optimizer] = []
        if matrices:
            self._parts.append(
                torch.optim.Muon(
                    [parameters[name] for name in matrices],
                    config.lr,
                    config.weight_decay,
                    config.momentum,
                    adjust_lr_fn="match_rms_adamw",
                )
            )
        if rest:
            betas = (config.beta1, config.beta2)
            # Norms and biases are not shrunk: no later layer could make up for their scale.
            least = 2 if config.decay == "matrices" else 0
            groups = [
                {"params": [p for p in rest if p.ndim >= least], "weight_decay": config.weight_decay},
                {"params": [p for p in rest if p.ndim < least], "weight_decay": 0.0},
            ]
            filled = [group for group in groups if group["params"]]
            # Fused: one pass over weight, gradient and moments instead of a dozen, on a CPU as on a GPU.
            self._parts.append(torch.optim.AdamW(filled, config.lr, betas, fused=True))

    def step(self) -> None:
        for part in self._parts:
            part.step()

    def set_lr(self, lr: float) -> None:
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = lr

    def forget(self) -> None:
        """The state as it was before the first step."""
        for part in self._parts:
            part.state.clear()

    def state_tensors(self) -> dict[str, Tensor]:
        """The tensors of `own_state`, whole."""
        return {name: whole(value) for name, value in self.own_state().items()}

    def own_state(self) -> dict[str, Tensor]:
        """State tensors by `<key>:<parameter>`, such as `exp_avg:model.norm.weight`, each spread like its parameter. Step counts are
        tensors too; every process has them.
        """
        names: dict[Tensor, str] = {parameter: name for name, parameter in self._parameters.items()}
        return {
            f"{key}:{names[parameter]}": value
            for part in self._parts
            for parameter, state in part.state.items()
            for key, value in state.items()
        }

    def load_state_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Raises ValueError for the state of another optimiser, which would otherwise start over without a word."""
        self.forget()
        for compound in tensors:
            key, _, name = compound.partition(":")
            part = self._part_of(name)
            if (key == "momentum_buffer") != isinstance(part, torch.optim.Muon):
                raise ValueError(f"the checkpoint holds {key!r} of {name}: it was written with another optim.optimizer")
            parameter = self._parameters[name]
            # Every process has its own step count; other tensors are spread like their parameters. All lie on the same device as these.
            spread = key != "step"
            value = stored_share(tensors, compound, parameter) if spread else tensors[compound].to(parameter.device)
            part.state[parameter][key] = value.clone()

    def _part_of(self, name: str) -> torch.optim.Optimizer:
        wanted = self._parameters[name]
        return next(
            part for part in self._parts if any(wanted is p for group in part.param_groups for p in group["params"])
        )


def _is_layer_matrix(name: str, parameters: Mapping[str, nn.Parameter]) -> bool:
    return ".layers." in name and parameters[name].ndim == 2
