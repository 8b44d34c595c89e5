"""The policy under training: its adapters, its optimiser, and log-probabilities of responses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainer.config import PolicyConfig
from trainer.inference.attention import use_grouped_attention
from trainer.inference.prefix import PrefixTree
from trainer.seeding import derive_seed

from .head import log_probs
from .masters import Masters
from .optimizers import Optimizers

Sequence_ = tuple[tuple[int, ...], tuple[int, ...]]
"""Prompt tokens and response tokens."""


@dataclass(frozen=True)
class Scored:
    """One response: log pi of its tokens (with gradient, if any) and the entropies where they were chosen, each [T]."""

    logp_T: Tensor
    entropy_T: Tensor


class Learner:
    """Owns the trained parameters and the optimiser, and saves both as named tensors.

    With adapters the untrained model is the same model with the adapters off. Without them a frozen copy is kept, at the
    price of its memory, so that the distance from it can always be shown.
    """

    def __init__(self, model: Any, config: PolicyConfig) -> None:
        use_grouped_attention(model)
        model.eval()  # no dropout: log-probabilities of one policy must not differ between two passes
        self._config = config
        self._frozen = None if config.model.lora else deepcopy(model).requires_grad_(False)
        self._peft = _with_adapters(model, config) if config.model.lora else None
        self._model = self._peft.get_base_model() if self._peft else model
        if config.optim.recompute_activations:
            _recompute_activations(self._model)
        named = (self._peft or model).named_parameters()
        self._masters = Masters({name: parameter for name, parameter in named if parameter.requires_grad})
        self.parameters = self._masters.parameters
        self.optimizer = Optimizers(self.parameters, config.optim)

    def score(self, sequences: Sequence[Sequence_], temperature: float, untrained: bool = False) -> list[Scored]:
        """One forward pass over all sequences, shared prefixes once. `untrained`: as the model was before the run."""
        hidden_MD, tokens_M = self.response_states(sequences, untrained)
        head_VD = self._model.get_output_embeddings().weight
        if untrained and self._frozen is not None:
            head_VD = self._frozen.get_output_embeddings().weight
        logp_M, entropy_M = log_probs(hidden_MD, head_VD, tokens_M, temperature)
        lengths = [len(response) for _, response in sequences]
        # What follows are sums over a few numbers per token, which the records of the step share: on the CPU.
        parts = zip(logp_M.cpu().split(lengths), entropy_M.cpu().split(lengths), strict=True)
        return [Scored(logp_T, entropy_T) for logp_T, entropy_T in parts]

    def response_states(self, sequences: Sequence[Sequence_], untrained: bool = False) -> tuple[Tensor, Tensor]:
        """Hidden states [M, D] from which the M response tokens are predicted, and those tokens [M]."""
        off = untrained and self._peft is not None
        model = self._frozen if untrained and self._frozen is not None else self._model
        with self._peft.disable_adapter() if off else nullcontext():
            return response_states(model, sequences)

    def logits(self, hidden_MD: Tensor) -> Tensor:
        return self._model.get_output_embeddings()(hidden_MD).float()

    def merged_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters that training changes, under the names of the plain model."""
        with torch.no_grad():
            if self._peft is None:
                yield from ((name, parameter.detach()) for name, parameter in self._model.named_parameters())
                return
            for name, module in self._model.named_modules():
                if hasattr(module, "lora_A"):
                    base = module.base_layer.weight
                    yield f"{name}.weight", (base + module.get_delta_weight("default")).to(base.dtype)

    @contextmanager
    def holding(self, policy: dict[str, Tensor]) -> Iterator[None]:
        """Meanwhile the trained parameters have the values of `policy`; afterwards their own again."""
        mine = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}
        self._fill(policy)
        try:
            yield
        finally:
            self._fill(mine)

    def _fill(self, policy: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(policy[name])
        self._masters.publish()

    def begin_update(self) -> None:
        """Gradients of all passes from here on belong to one update."""
        self._masters.drop_gradients()

    def clip(self, largest: float) -> float:
        """The norm of the gradient over all parameters, before it is cut down to `largest`."""
        self._masters.complete_gradients()
        return float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), largest))

    def end_update(self) -> None:
        self.optimizer.step()
        self._masters.publish()

    def forget_moments(self) -> None:
        """The optimiser as it was before its first step."""
        self.optimizer.forget()

    def set_lr(self, lr: float) -> None:
        self.optimizer.set_lr(lr)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything a checkpoint needs, by owner."""
        return {"policy": dict(self.parameters), "optimizer": self.optimizer.state_tensors()}

    def load_state_tensors(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Raises ValueError when the checkpoint is of another model, another adapter rank or another optimiser."""
        policy = tensors["policy"]
        wrong = [n for n, p in self.parameters.items() if n not in policy or policy[n].shape != p.shape]
        if wrong or len(policy) != len(self.parameters):
            raise ValueError(f"the checkpoint does not fit this model: {(wrong or sorted(policy))[0]} differs")
        self._fill(policy)
        self.optimizer.load_state_tensors(tensors["optimizer"])


class Teacher:
    """Another model that says what it would have given the same responses. Never trained."""

    def __init__(self, model: Any) -> None:
        use_grouped_attention(model)
        self._model = model.eval().requires_grad_(False)

    @torch.no_grad()
    def score(self, sequences: Sequence[Sequence_], temperature: float) -> list[Tensor]:
        """log pi_teacher of each response's tokens, [T] each."""
        hidden_MD, tokens_M = response_states(self._model, sequences)
        logp_M, _ = log_probs(hidden_MD, self._model.get_output_embeddings().weight, tokens_M, temperature)
        return list(logp_M.cpu().split([len(response) for _, response in sequences]))


def response_states(model: Any, sequences: Sequence[Sequence_]) -> tuple[Tensor, Tensor]:
    """One pass of `model`, shared prefixes once: hidden states [M, D] and the M response tokens they predict."""
    tree = PrefixTree.of([prompt + response[:-1] for prompt, response in sequences]).to(model.device)
    hidden_ND = model.model(**tree.model_inputs(), use_cache=False).last_hidden_state[0]
    paths = zip(tree.paths, sequences, strict=True)
    nodes_M = torch.cat([path[len(prompt) - 1 :] for path, (prompt, _) in paths])
    tokens_M = torch.tensor([token for _, response in sequences for token in response], device=hidden_ND.device)
    return hidden_ND[nodes_M], tokens_M


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
