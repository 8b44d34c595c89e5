"""The policy under training: its adapters, its optimiser, and log-probabilities of responses."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.config import PolicyConfig
from trainer.inference.attention import use_grouped_attention
from trainer.inference.prefix import PrefixTree
from trainer.seeding import derive_seed

from .head import log_probs, sampled_log_probs
from .masters import Masters
from .optimizers import Optimizers
from .sharding import Share, share_of, whole

Sequence_ = tuple[tuple[int, ...], tuple[int, ...]]
"""Prompt tokens and response tokens."""


@dataclass(frozen=True)
class Scored:
    """One response: log pi of its tokens (with gradient, if any) and the entropies where they were chosen, each [T]."""

    logp_T: Tensor
    entropy_T: Tensor


Measure = Callable[[Tensor, Tensor, Tensor], Any]
"""From hidden states [M, D], head [V, D] and the tokens [M] they predict."""


class Pass(nn.Module):
    """A model's whole way from tokens to what is measured at its head, as one module: what several processes share."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, sequences: Sequence[Sequence_], measure: Measure) -> Any:
        """One pass over all sequences, shared prefixes once; what `measure` makes of the M response tokens."""
        device = self.model.device
        tree = PrefixTree.of([prompt + response[:-1] for prompt, response in sequences]).to(device)
        hidden_ND = self.model.model(**tree.model_inputs(), use_cache=False).last_hidden_state[0]
        paths = zip(tree.paths, sequences, strict=True)
        nodes_M = torch.cat([path[len(prompt) - 1 :] for path, (prompt, _) in paths])
        tokens_M = torch.tensor([token for _, response in sequences for token in response], device=device)
        return measure(hidden_ND[nodes_M], self.model.get_output_embeddings().weight, tokens_M)


class Learner:
    """Owns the trained parameters and the optimiser, and saves both as named tensors.

    With adapters the untrained model is the same model with the adapters off. Without them a frozen copy is kept, at the
    price of its memory, so that the distance from it can always be shown. Where several processes hold the model (`share`),
    all of them call the same methods in the same order.
    """

    def __init__(self, model: Any, config: PolicyConfig, share: Share | None = None) -> None:
        use_grouped_attention(model)
        model.eval()  # no dropout: log-probabilities of one policy must not differ between two passes
        self._config = config
        self.share = share or Share()
        frozen = None if config.model.lora else deepcopy(model).requires_grad_(False)
        self._peft = _with_adapters(model, config) if config.model.lora else None
        self._model = self._peft.get_base_model() if self._peft else model
        if config.optim.recompute_activations:
            _recompute_activations(self._model)
        self._pass = self._spread(self._model)
        self._frozen_pass = self._spread(frozen) if frozen is not None else self._pass
        named = (self._peft or model).named_parameters()
        self._masters = Masters({name: parameter for name, parameter in named if parameter.requires_grad})
        self.parameters = self._masters.parameters
        self.optimizer = Optimizers(self.parameters, config.optim)

    def score(self, sequences: Sequence[Sequence_], temperature: float, untrained: bool = False) -> list[Scored]:
        """One forward pass over all sequences, shared prefixes once. `untrained`: as the model was before the run."""
        off = untrained and self._peft is not None
        run = self._frozen_pass if untrained else self._pass
        with self._peft.disable_adapter() if off else nullcontext():
            logp_M, entropy_M = run(sequences, partial(log_probs, temperature=temperature))
        lengths = [len(response) for _, response in sequences]
        # What follows are sums over a few numbers per token, which the records of the step share: on the CPU.
        parts = zip(logp_M.cpu().split(lengths), entropy_M.cpu().split(lengths), strict=True)
        return [Scored(logp_T, entropy_T) for logp_T, entropy_T in parts]

    @torch.no_grad()
    def sampled_log_probs(self, sequence: Sequence_, temperature: float, top_p: float) -> Tensor:
        """Log-probabilities [T] of a response's tokens under the distribution that a sampler draws from."""
        logp_T: Tensor = self._pass([sequence], partial(sampled_log_probs, temperature=temperature, top_p=top_p))
        return logp_T.cpu()

    def _spread(self, model: Any) -> Pass:
        made, dtype = Pass(model), getattr(torch, self._config.model.dtype)
        self.share.spread(made, list(model.model.layers), dtype if model.dtype != dtype else None)
        return made

    def merged_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters that training changes, whole, under the names and in the dtype of the plain model."""
        dtype = getattr(torch, self._config.model.dtype)
        with torch.no_grad():
            if self._peft is None:
                for name, parameter in self._model.named_parameters():
                    yield name, whole(parameter.detach()).to(dtype)
                return
            for name, module in self._model.named_modules():
                if hasattr(module, "lora_A"):
                    a, b = (whole(part["default"].weight) for part in (module.lora_A, module.lora_B))
                    merged = whole(module.base_layer.weight) + module.scaling["default"] * (b @ a)
                    yield f"{name}.weight", merged.to(dtype)

    def adapter_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The adapters alone, as `<layer>.lora_A.weight` and `<layer>.lora_B.weight`; B with the scale multiplied in."""
        with torch.no_grad():
            for name, module in self._model.named_modules():
                if hasattr(module, "lora_A"):
                    dtype = module.base_layer.weight.dtype
                    yield f"{name}.lora_A.weight", whole(module.lora_A["default"].weight).to(dtype)
                    scaled = whole(module.lora_B["default"].weight) * module.scaling["default"]
                    yield f"{name}.lora_B.weight", scaled.to(dtype)

    @contextmanager
    def holding(self, policy: dict[str, Tensor]) -> Iterator[None]:
        """Meanwhile the trained parameters have the values of `policy`; afterwards their own again."""
        mine = self.policy()
        self.fill(policy)
        try:
            yield
        finally:
            self.fill(mine)

    def policy(self) -> dict[str, Tensor]:
        """Copies of the trained parameters as they are now, whole."""
        return {name: whole(parameter.detach()).clone() for name, parameter in self.parameters.items()}

    def fill(self, policy: dict[str, Tensor]) -> None:
        """Give the trained parameters these values."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(share_of(policy[name], parameter))
        self._masters.publish()

    def begin_update(self) -> None:
        """Gradients of all passes from here on belong to one update."""
        self._masters.drop_gradients()

    def clip(self, largest: float) -> float:
        """The norm of the gradient over all parameters, before it is cut down to `largest`."""
        self._masters.complete_gradients()
        return float(whole(torch.nn.utils.clip_grad_norm_(self.parameters.values(), largest)))

    def end_update(self) -> None:
        self.optimizer.step()
        self._masters.publish()

    def forget_moments(self) -> None:
        """The optimiser as it was before its first step."""
        self.optimizer.forget()

    def set_lr(self, lr: float) -> None:
        self.optimizer.set_lr(lr)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything a checkpoint needs, whole, by owner."""
        policy = {name: whole(parameter.detach()) for name, parameter in self.parameters.items()}
        return {"policy": policy, "optimizer": self.optimizer.state_tensors()}

    def load_state_tensors(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Raises ValueError when the checkpoint is of another model, another adapter rank or another optimiser."""
        policy = tensors["policy"]
        wrong = [n for n, p in self.parameters.items() if n not in policy or policy[n].shape != p.shape]
        if wrong or len(policy) != len(self.parameters):
            raise ValueError(f"the checkpoint does not fit this model: {(wrong or sorted(policy))[0]} differs")
        self.fill(policy)
        self.optimizer.load_state_tensors(tensors["optimizer"])

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def close(self) -> None:
        """Nothing to end: the model is in this process."""


class Teacher:
    """Another model that says what it would have given the same responses. Never trained."""

    def __init__(self, model: Any) -> None:
        use_grouped_attention(model)
        self._pass = Pass(model.eval().requires_grad_(False))

    @torch.no_grad()
    def score(self, sequences: Sequence[Sequence_], temperature: float) -> list[Tensor]:
        """log pi_teacher of each response's tokens, [T] each."""
        logp_M, _ = self._pass(sequences, partial(log_probs, temperature=temperature))
        return list(logp_M.cpu().split([len(response) for _, response in sequences]))


def _recompute_activations(model: Any) -> None:
    """Keep only what goes into each layer; the backward pass runs the layer again. Layers have no dropout to repeat."""
    for layer in model.model.layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)


def _with_adapters(model: Any, config: PolicyConfig) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = config.model.lora
    assert lora is not None  # noqa: S101 - the caller asked for adapters
    settings = LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(config.seed, "adapters"))
        return get_peft_model(model, settings)
