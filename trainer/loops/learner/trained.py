"""Training changes some parts of a model (its adapters or all of its weights); they and the optimiser are named tensors here."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainer.checkpoints import Elsewhere, Rows
from trainer.config import RecipeConfig
from trainer.inference.decoders import adapted, layers, make_ready
from trainer.seeding import derive_seed

from .fused_adapters import fuse
from .master_weights import Masters
from .optimizers import Optimizers
from .sharding import ModelShare, own_part, rows_of, shape_of, stored_share, whole

Task = Literal["CAUSAL_LM", "SEQ_CLS"]
"""The head that the model ends in, as peft names it."""


class Trained:
    """Owns the trained parameters and the optimiser, and saves both as named tensors. A subclass says what is measured at the head.

    If several processes hold the model (`share`), all of them call the same methods in the same order.
    """

    def __init__(
        self, model: Any, config: RecipeConfig, share: ModelShare | None = None, task: Task = "CAUSAL_LM"
    ) -> None:
        make_ready(model)
        model.eval()  # no dropout: log-probabilities of one policy must not differ between two passes
        self._config = config
        self.share = share or ModelShare()
        self._peft = _with_adapters(model, config, task) if config.model.lora else None
        self._model = self._peft.get_base_model() if self._peft else model
        if config.optim.recompute_activations:
            _recompute_activations(self._model)
        self._spread()
        named = (self._peft or model).named_parameters()
        self._masters = Masters({name: parameter for name, parameter in named if parameter.requires_grad})
        self.parameters = self._masters.parameters
        self.optimizer = Optimizers(self.parameters, config.optim)
        self._marked: dict[str, Tensor] = {}

    def _spread(self) -> None:
        """Make the passes over the model, before the parameters are looked at: spreading replaces them."""

    @property
    def device(self) -> torch.device:
        device: torch.device = self._model.device
        return device

    @property
    def adapted(self) -> Any:
        """The model with its adapters, as peft has it; None if all weights are trained."""
        return self._peft

    @property
    def plain(self) -> Any:
        """The model itself. Adapters, if there are any, are inside its layers."""
        return self._model

    def merged_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters that training changes, whole, under the names and in the dtype of the plain model."""
        dtype = getattr(torch, self._config.model.dtype)
        with torch.no_grad():
            if self._peft is None:
                for name, parameter in self._model.named_parameters():
                    yield name, whole(parameter.detach()).to(dtype)
                return
            for name, module in self._peft_modules:
                if hasattr(module, "lora_A"):
                    a, b, scale = _adapter(module)
                    merged = torch.addmm(whole(module.base_layer.weight).to(b.dtype), b, a, alpha=scale)
                    yield f"{name}.weight", merged.to(dtype)
                else:
                    for part, parameter in module.modules_to_save["default"].named_parameters():
                        yield f"{name}.{part}", whole(parameter.detach()).to(dtype)

    def adapter_weights(self, precision: str) -> Iterator[tuple[str, Tensor]]:
        """The adapters alone, in a torch dtype by name, as `<layer>.lora_A.weight` and `<layer>.lora_B.weight`; B is multiplied by the
        scale.
        """
        dtype = getattr(torch, precision)
        with torch.no_grad():
            for name, a, b, scale in self._adapters:
                yield f"{name}.lora_A.weight", whole(a).detach().to(dtype)
                yield f"{name}.lora_B.weight", (scale * whole(b).detach()).to(dtype)

    @cached_property
    def _adapters(self) -> list[tuple[str, Tensor, Tensor, float]]:
        """Name, A [R, I], B [O, R] and scale of each layer with an adapter; A and B are what this process holds. The list is kept
        because looking it up takes longer than copying the tensors.
        """
        found = [(name, layer) for name, layer in self._peft_modules if hasattr(layer, "lora_A")]
        return [(name, *_held(layer)) for name, layer in found]

    @cached_property
    def _peft_modules(self) -> list[tuple[str, Any]]:
        """The modules that peft has put into the plain model, by name: layers with adapters, and modules that are trained whole."""
        found = self._model.named_modules()
        return [(name, part) for name, part in found if hasattr(part, "lora_A") or hasattr(part, "modules_to_save")]

    @contextmanager
    def holding(self, policy: Mapping[str, Tensor]) -> Iterator[None]:
        """While the block runs, the trained parameters have the values of `policy`; afterwards they have their own again."""
        mine = self.policy()
        self.fill(policy)
        try:
            yield
        finally:
            self.fill(mine)

    @contextmanager
    def standing_in(self, policy: Mapping[str, Tensor]) -> Iterator[None]:
        """While the block runs, passes use these values instead of the trained parameters, which do not change, so that the backward pass
        of an earlier pass still works afterwards. Only if one process holds the model.
        """
        mine = {name: weight.data for name, weight in self._masters.weights.items()}
        try:
            for name, weight in self._masters.weights.items():
                weight.data = policy[name].to(weight.device, weight.dtype)
            yield
        finally:
            for name, weight in self._masters.weights.items():
                weight.data = mine[name]

    def policy(self) -> dict[str, Tensor]:
        """Copies of the present trained parameters, whole."""
        return {name: tensor.clone() for name, tensor in self.trained_weights()}

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The trained parameters, whole, one after the other."""
        for name, parameter in self.parameters.items():
            yield name, whole(parameter.detach())

    def fill(self, policy: Mapping[str, Tensor]) -> None:
        """Give the trained parameters these values."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(stored_share(policy, name, parameter))
        self._masters.publish()

    def begin_update(self) -> None:
        """Begin an update: gradients of all passes from here on belong to it."""
        self._masters.drop_gradients()

    def clip(self, largest: float) -> float:
        """Clip the gradient to the norm `largest`; returns its norm over all parameters before."""
        self._masters.complete_gradients()
        return float(whole(torch.nn.utils.clip_grad_norm_(self.parameters.values(), largest)))

    def end_update(self) -> None:
        self.optimizer.step()
        self._masters.publish()

    def forget_moments(self) -> None:
        """Reset the optimiser to its state before the first step."""
        self.optimizer.forget()

    def set_lr(self, lr: float) -> None:
        self.optimizer.set_lr(lr)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """All tensors that a checkpoint needs, whole, by owner."""
        return {"policy": dict(self.trained_weights()), "optimizer": self.optimizer.state_tensors()}

    def mark(self) -> None:
        """Keep the state that `take_back` restores, in the machine's memory; each process keeps its share."""
        before, self._marked = self._marked, {}
        for name, tensor in self._own().items():
            kept = before.get(name)
            self._marked[name] = own_part(tensor).to("cpu", copy=True) if kept is None else kept.copy_(own_part(tensor))

    @torch.no_grad()
    def take_back(self) -> None:
        """Restore weights and moments of the last `mark`."""
        if not any(name.startswith("optimizer ") for name in self._marked):
            self.optimizer.forget()
        for name, tensor in self._own().items():
            own_part(tensor).copy_(self._marked[name])
        self._masters.publish()

    def _own(self) -> dict[str, Tensor]:
        policy = {f"policy {name}": parameter.detach() for name, parameter in self.parameters.items()}
        return policy | {f"optimizer {name}": value for name, value in self.optimizer.own_state().items()}

    def shares(self) -> dict[str, dict[str, Rows]]:
        """`state_tensors`, but of each tensor only what this process holds; nothing is sent between processes."""
        policy: dict[str, Tensor] = dict(self.parameters)
        owned = {"policy": policy, "optimizer": self.optimizer.own_state()}
        return {
            owner: {name: rows for name, tensor in tensors.items() if (rows := rows_of(tensor.detach()))}
            for owner, tensors in owned.items()
        }

    def elsewhere(self) -> Sequence[Elsewhere]:
        """Other processes that save a part of the state: none."""
        return ()

    def load_state_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Raises ValueError if the checkpoint is of another model, another adapter rank or another optimiser."""
        policy = tensors["policy"]
        wrong = [n for n, p in self.parameters.items() if n not in policy or shape_of(policy, n) != tuple(p.shape)]
        if wrong or len(policy) != len(self.parameters):
            raise ValueError(f"the checkpoint does not fit this model: {(wrong or sorted(policy))[0]} differs")
        self.fill(policy)
        self.optimizer.load_state_tensors(tensors["optimizer"])

    @property
    def size(self) -> int:
        """The count of numbers that are trained."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def close(self) -> None:
        """Nothing to end, because the model is in this process."""


def _adapter(layer: Any) -> tuple[Tensor, Tensor, float]:
    """A [R, I], B [O, R] and the scale of a layer with an adapter, whole."""
    a, b, scale = _held(layer)
    return whole(a), whole(b), scale


def _held(layer: Any) -> tuple[Tensor, Tensor, float]:
    """Like `_adapter`, with A and B as this process holds them."""
    return layer.lora_A["default"].weight, layer.lora_B["default"].weight, layer.scaling["default"]


def _recompute_activations(model: Any) -> None:
    """Keep only the input of each layer; the backward pass runs the layer again. Layers have no dropout to repeat."""
    for layer in layers(model):
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)


def _with_adapters(model: Any, config: RecipeConfig, task: Task) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = config.model.lora
    assert lora is not None  # noqa: S101 - the caller asked for adapters
    settings = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # peft declares int, and divides any number
        lora_dropout=0.0,
        target_modules=adapted(model),
        task_type=task,
    )
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(config.seed, "adapters"))
        made = get_peft_model(model, settings)
    fuse(made)
    return made
