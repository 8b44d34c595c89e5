"""A language model under training: log-probabilities of given tokens."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from trainer.config import RecipeConfig
from trainer.inference.decoders import body, layers, make_ready, tree_inputs, tried
from trainer.inference.prefix import PrefixTree
from trainer.rollouts import Trajectory

from .head import log_probs, sampled_log_probs
from .sharding import ModelShare
from .trained import Trained

Sequence_ = tuple[tuple[int, ...], tuple[int, ...]]
"""Prompt tokens and response tokens."""


class Marked(NamedTuple):
    """Tokens, and the places (ascending, never 0) of those that are predicted from the tokens before them."""

    tokens: tuple[int, ...]
    places: Sequence[int]

    @classmethod
    def response(cls, prompt: tuple[int, ...], response: tuple[int, ...]) -> "Marked":
        """Marks all tokens of the response, after the prompt."""
        return cls(prompt + response, range(len(prompt), len(prompt) + len(response)))

    @classmethod
    def of(cls, trajectory: Trajectory, sampled: bool = False) -> "Marked":
        """Marks the tokens that the policy wrote, after the prompt that it is trained on, or with `sampled` after the prompt that it
        was sampled from. Tokens of the environment are read and not marked.
        """
        prompt = trajectory.prompt if sampled else trajectory.view or trajectory.prompt
        places, start = trajectory.places, len(prompt)
        if isinstance(places, range):
            return cls(prompt + trajectory.tokens, range(places.start + start, places.stop + start))
        return cls(prompt + trajectory.tokens, [place + start for place in places])

    @property
    def read(self) -> tuple[int, ...]:
        """The tokens that go through the model: those before the last predicted token."""
        return self.tokens[: self.places[-1]]

    @property
    def predicted(self) -> np.ndarray:
        """[T], the marked tokens."""
        marked = self.tokens[slice(*self._whole)] if self._whole else [self.tokens[place] for place in self.places]
        return np.frombuffer(array("q", marked), dtype=np.int64)

    def before(self, path_T: Tensor) -> Tensor:
        """The nodes [T] before the marked tokens, from the nodes of all tokens: each marked token is predicted from the node before it."""
        if self._whole:
            start, stop = self._whole
            return path_T[start - 1 : stop - 1]
        return path_T[torch.tensor(self.places) - 1]

    @property
    def _whole(self) -> tuple[int, int] | None:
        """The ends of the marked places if they are one stretch, so that no list of them is needed; else None."""
        places = self.places
        return (places.start, places.stop) if isinstance(places, range) and places.step == 1 else None


@dataclass(frozen=True)
class ResponseLogps:
    """One response: log pi of its tokens (with gradient, if any) and the entropies of the distributions that they were drawn from, each
    [T].
    """

    logp_T: Tensor
    entropy_T: Tensor


Measure = Callable[[Tensor, Tensor, Tensor], Any]
"""A function of hidden states [M, D], head [V, D] and the tokens [M] that these predict."""


class Outlook(NamedTuple):
    """Hidden states [M, D] before the predicted tokens, and the head [V, D] that turns them into distributions."""

    hidden_MD: Tensor
    head_VD: Tensor


def _outlook(hidden_MD: Tensor, head_VD: Tensor, tokens_M: Tensor) -> Outlook:
    return Outlook(hidden_MD, head_VD)


class Pass(nn.Module):
    """A model's whole way from tokens to a measure at its head, as one module that several processes can share."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, rows: Sequence[Marked], measure: Measure) -> Any:
        """One pass over all rows, shared prefixes once; returns what `measure` gives for the M predicted tokens."""
        device = self.model.device
        tree = PrefixTree.of([row.read for row in rows])
        nodes_M = torch.cat([row.before(path) for row, path in zip(rows, tree.paths, strict=True)]).to(device)
        tokens_M = torch.from_numpy(np.concatenate([row.predicted for row in rows])).to(device)
        hidden_ND = body(self.model)(**tree_inputs(self.model, tree.to(device)), use_cache=False).last_hidden_state[0]
        return measure(hidden_ND[nodes_M], self.model.get_output_embeddings().weight, tokens_M)


class Learner(Trained):
    """A model whose log-probabilities are trained on.

    With adapters the untrained model is the same model with the adapters off. Without adapters it is a frozen copy, which takes as
    much memory as the model; the copy is kept if the objective has a KL to it, or if `reference` says so.
    """

    def __init__(
        self, model: Any, config: RecipeConfig, share: ModelShare | None = None, reference: bool | None = None
    ) -> None:
        tried(model.eval())
        kept = config.holdings().frozen if reference is None else reference and config.model.lora is None
        self._frozen = deepcopy(model).requires_grad_(False) if kept else None
        if self._frozen is not None:
            make_ready(self._frozen.eval())
        super().__init__(model, config, share)
        self._start: Mapping[str, Tensor] = {}
        """If not empty: the adapters with which `untrained` passes run, instead of none."""

    def refer_to(self, policy: Mapping[str, Tensor]) -> None:
        """From now on `untrained` passes run with these trained weights. Only if the learner `refers`, and in one process."""
        if self._frozen is None:
            self._start = policy
            return
        with torch.no_grad():
            for name, parameter in self._frozen.named_parameters():
                if name in policy:
                    parameter.copy_(policy[name])

    @property
    def refers(self) -> bool:
        """Whether the learner can give the untrained model. If it cannot, `untrained` passes run with the model as it is."""
        return self._peft is not None or self._frozen is not None

    def _spread(self) -> None:
        self._pass = self._passes(self._model)
        self._frozen_pass = self._passes(self._frozen) if self._frozen is not None else self._pass

    def score(self, sequences: Sequence[Sequence_], temperature: float, untrained: bool = False) -> list[ResponseLogps]:
        """One forward pass over all sequences, shared prefixes once. With `untrained`, the model is that before the run."""
        return self.measure([Marked.response(*sequence) for sequence in sequences], temperature, untrained)

    def measure(self, rows: Sequence[Marked], temperature: float = 1.0, untrained: bool = False) -> list[ResponseLogps]:
        """`score` for the marked tokens of each row."""
        with self._as(untrained) as run:
            logp_M, entropy_M = run(rows, partial(log_probs, temperature=temperature))
        lengths = [len(row.places) for row in rows]
        # The records of the step need only sums over a few numbers per token: on the CPU.
        parts = zip(logp_M.cpu().split(lengths), entropy_M.cpu().split(lengths), strict=True)
        return [ResponseLogps(logp_T, entropy_T) for logp_T, entropy_T in parts]

    @torch.no_grad()
    def sampled_log_probs(
        self, rows: Sequence[Marked], temperature: float, top_p: float, untrained: bool = False
    ) -> list[Tensor]:
        """Log-probabilities [T] of each row's marked tokens under the distribution that a sampler draws from, in one pass."""
        measure = partial(sampled_log_probs, temperature=temperature, top_p=top_p)
        with self._as(untrained) as run:
            logp_M = run(rows, measure)
        return list(logp_M.cpu().split([len(row.places) for row in rows]))

    @torch.no_grad()
    def outlook(self, rows: Sequence[Marked]) -> "Outlook":
        """Hidden states before each marked token, and the head. Only if one process holds the whole model."""
        with self._as(untrained=False) as run:
            return run(rows, _outlook)  # type: ignore[no-any-return]

    @contextmanager
    def _as(self, untrained: bool) -> Iterator[Pass]:
        """The pass of the model as it is now, or as it was before the run."""
        around: AbstractContextManager[Any] = nullcontext()
        if untrained and self._peft is not None:
            around = self.standing_in(self._start) if self._start else _without_adapters(self._peft)
        with around:
            yield self._frozen_pass if untrained else self._pass

    def _passes(self, model: Any) -> Pass:
        made, dtype = Pass(model), getattr(torch, self._config.model.dtype)
        self.share.spread(made, layers(model), dtype if model.dtype != dtype else None)
        return made


@contextmanager
def _without_adapters(model: Any) -> Iterator[None]:
    """As peft's `disable_adapter`, which before each pass also looks in all modules for adapters that somebody has switched off."""
    model.base_model.disable_adapter_layers()
    try:
        yield
    finally:
        model.base_model.enable_adapter_layers()


class Teacher:
    """Another model that gives its probabilities of the same responses. It is never trained."""

    def __init__(self, model: Any) -> None:
        make_ready(model)
        self._pass = Pass(model.eval().requires_grad_(False))

    @torch.no_grad()
    def measure(self, rows: Sequence[Marked], temperature: float, keys: Sequence[str] = ()) -> list[Tensor]:
        """log pi_teacher of the marked tokens of each row, [T] each. The teacher speaks for all prompts, so `keys` has no effect."""
        logp_M, _ = self._pass(rows, partial(log_probs, temperature=temperature))
        return list(logp_M.cpu().split([len(row.places) for row in rows]))

    @torch.no_grad()
    def outlook(self, rows: Sequence[Marked]) -> Outlook:
        """The teacher's hidden states before each marked token, and its head."""
        return self._pass(rows, _outlook)  # type: ignore[no-any-return]
