"""Yes against no for many prompts; each shared beginning is computed once.

Prompts that follow one another and begin alike (one conversation, many criteria) form a group. Its common beginning goes
through the model once and stays in the key-value cache. The rest of each prompt is laid out as a tree in one row over that cache, so that
nothing is padded and the cache is not copied per criterion.

Axes: N nodes of a tree, P tokens in the cache, C prompts of a run, V vocabulary.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from trainer.inference.attention import use_grouped_attention
from trainer.inference.prefix import PrefixTree, pack

from .words import AnswerTokens

Tokens = Sequence[int]
_NODES = 512  # tokens of one forward pass, whose memory grows with them


@dataclass(frozen=True)
class MarginReading:
    """The next token's probabilities of a prompt. `cached_tokens` of the prompt were computed for an earlier prompt."""

    margin: float
    """log P(yes) - log P(no); each sums over all spellings."""
    mass: float
    """P(yes) + P(no) among all tokens: how much the model answers the question at all."""
    prompt_tokens: int
    cached_tokens: int

    @property
    def probability(self) -> float:
        """The probability of yes, given that the answer is yes or no."""
        return 1 / (1 + math.exp(-self.margin)) if self.margin > -700 else 0.0


class LogitJudge:
    """Asks a transformers model without generating. Raises ValueError if its tokenizer cannot tell yes from no."""

    def __init__(self, model: PreTrainedModel, tokenizer: Any) -> None:
        use_grouped_attention(model)
        self._model: Any = model.eval().requires_grad_(False)
        words = AnswerTokens.of(tokenizer)
        self._device = model.device
        self._yes, self._no = (torch.tensor(each, device=self._device) for each in (words.yes, words.no))
        self.longest_prompt = int(model.config.max_position_embeddings)
        self._opening: Tokens = ()
        self._opened = DynamicCache()

    @torch.inference_mode()
    def read(self, prompts: Sequence[Tokens]) -> list[MarginReading]:
        """A reading per prompt, in their order. Raises ValueError for a prompt that is empty or longer than the model's context."""
        for i, prompt in enumerate(prompts):
            if not 0 < len(prompt) <= self.longest_prompt:
                raise ValueError(f"prompts[{i}]: {len(prompt)} tokens; the model sees 1 to {self.longest_prompt}")
        groups = alike(prompts)
        if len(groups) > 1:
            self._open(prompts[0][: split(prompts)])
        return [reading for group in groups for reading in self._read_group([prompts[i] for i in group])]

    def _open(self, tokens: Tokens) -> None:
        """Keep the common beginning of all prompts, such as the instructions to a judge, for the groups that follow."""
        if list(tokens) != list(self._opening):
            self._opening, self._opened = tokens, DynamicCache()
            self._go_through(self._opened, tokens)

    def _read_group(self, prompts: Sequence[Tokens]) -> list[MarginReading]:
        """The readings in the order of the prompts, whichever prompts are computed together."""
        shared = split(prompts)
        opened = len(self._opening) if common(self._opening, prompts[0]) == len(self._opening) <= shared else 0
        cache = copy.deepcopy(self._opened) if opened else DynamicCache()
        self._go_through(cache, prompts[0][opened:shared])
        found: dict[int, MarginReading] = {}
        for together in pack([prompt[shared:] for prompt in prompts], _NODES):
            logits_CV = self._go_on(cache, [prompts[i][shared:] for i in together.places])
            logp_CV = torch.log_softmax(logits_CV.float(), dim=-1)
            yes_C, no_C = logp_CV[:, self._yes].logsumexp(-1), logp_CV[:, self._no].logsumexp(-1)
            for i, yes, no in zip(together.places, yes_C.tolist(), no_C.tolist(), strict=True):
                cached = shared if i else opened
                found[i] = MarginReading(yes - no, math.exp(yes) + math.exp(no), len(prompts[i]), cached)
        return [found[i] for i in range(len(prompts))]

    def _go_through(self, cache: DynamicCache, tokens: Tokens) -> None:
        """Add keys and values of `tokens` to the cache, in pieces so that memory grows only with the cache's length."""
        for start in range(0, len(tokens), _NODES):
            self._forward(cache, PrefixTree.of([tokens[start : start + _NODES]], cache.get_seq_length()))

    def _go_on(self, cache: DynamicCache, endings: Sequence[Tokens]) -> Tensor:
        """Next-token logits [C, V] after each ending, all in one pass over the cache, which stays as it was."""
        tree = PrefixTree.of(endings, cache.get_seq_length())
        hidden_ND = self._forward(cache, tree)
        cache.crop(-len(tree.tokens_N))
        last_CD = hidden_ND[torch.stack([path[-1] for path in tree.paths]).to(self._device)]
        logits_CV: Tensor = self._model.get_output_embeddings()(last_CD)
        return logits_CV

    def _forward(self, cache: DynamicCache, tree: PrefixTree) -> Tensor:
        output = self._model.model(**tree.to(self._device).model_inputs(), past_key_values=cache)
        hidden_ND: Tensor = output.last_hidden_state[0]
        return hidden_ND


def common(one: Tokens, two: Tokens) -> int:
    """The number of tokens that both begin with."""
    for place, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return place
    return min(len(one), len(two))


def alike(prompts: Sequence[Tokens]) -> list[list[int]]:
    """Stretches of prompts that share a beginning worth caching: each new prompt may shorten the group's beginning by at most half.

    All prompts of a template share its first words. Without that rule they would be one group that shares only those.
    """
    groups: list[list[int]] = []
    shared = 0
    for i, prompt in enumerate(prompts):
        if groups:
            kept = common(prompts[groups[-1][0]][:shared], prompt)
            worth = shared if len(groups[-1]) > 1 else shared // 2
            if 2 * kept >= worth:
                groups[-1].append(i)
                shared = kept
                continue
        groups.append([i])
        shared = len(prompt)
    return groups


def split(prompts: Sequence[Tokens]) -> int:
    """The end of a group's cached beginning; every prompt has at least one token behind it, whose output is read."""
    if len(prompts) == 1:
        return max(0, len(prompts[0]) - _NODES)
    shared = min(common(prompts[0], prompt) for prompt in prompts)
    return min(shared, *(len(prompt) - 1 for prompt in prompts))
