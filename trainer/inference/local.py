"""A sampler inside this process: a transformers model with continuous batching."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from .attention import use_grouped_attention
from .cache import SlotCache
from .chat import response_text
from .checksum import Checksum
from .draw import draw_tokens, uniforms
from .prefix import PrefixTree, pack
from .sampling import FinishReason, SampleFinished, SampleRequest, SampleResult, SamplingProgress

_PREFIX_NODES = 2048
"""Tokens of one pass over prompts. Scaffolds of one prompt share it where they are in one pass."""


class LocalSampler:
    """Computes shared prompt prefixes once and decodes up to `max_batch` responses side by side.

    A response that ends makes room at once, and the next request takes it: short responses do not wait for long ones.
    Only requests that agree in temperature and top-p are decoded together.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_batch: int = 64) -> None:
        use_grouped_attention(model)
        self._model = model.eval().requires_grad_(False)
        self._tokenizer = tokenizer
        self._max_batch = max_batch
        self._stop_ids = stop_token_ids(model.generation_config, tokenizer)
        self.version = 0

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> str:
        """Copy the named parameters in. Raises KeyError for a name this model does not have."""
        mine = dict(self._model.named_parameters())
        held = Checksum()
        with torch.no_grad():
            for name, tensor in weights:
                mine[name].copy_(tensor)
                held.add(name, mine[name])
        self.version = version
        return held.hexdigest()

    def close(self) -> None:
        """Nothing to do: all of it is in this process."""

    @torch.inference_mode()
    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]:
        results: dict[int, SampleResult] = {}
        for places in _alike(requests):
            for i, result in _Stream(self, [requests[i] for i in places]).run():
                if result is not None:
                    results[places[i]] = result
                    if finished:
                        finished(places[i], result)
                elif progress:
                    progress(len(results), len(requests))
        return [results[place] for place in range(len(requests))]

    @torch.inference_mode()
    def _advance(self, steps: Iterator[None]) -> bool:
        """One step; False where there is none. The mode is set anew each time, for a generator would leak it."""
        return next(steps, self) is None

    def stream(self, request: SampleRequest) -> Iterator[tuple[tuple[int, ...], SampleResult | None]]:
        """Token by token what `sample` gives as a whole: the tokens so far, at the end with the result."""
        stream = _Stream(self, [request])
        steps = stream.steps()
        while self._advance(steps):
            yield tuple(stream._tokens[0]), stream._results.get(0)


def _alike(requests: Sequence[SampleRequest]) -> Iterable[list[int]]:
    """Places of the requests, grouped by how they are drawn."""
    alike: dict[tuple[float, float], list[int]] = {}
    for place, request in enumerate(requests):
        alike.setdefault((request.temperature, request.top_p), []).append(place)
    return alike.values()


class _Stream:
    """Requests on their way through the model. Row r of the tensors belongs to request `self._rows[r]`."""

    _cache: SlotCache

    def __init__(self, sampler: LocalSampler, requests: list[SampleRequest]) -> None:
        self._sampler, self._requests, self._model = sampler, requests, sampler._model
        self._waiting = deque(range(len(requests)))
        self._capacity = min(sampler._max_batch, len(requests))
        self._new_tokens = max(request.max_new_tokens for request in requests)
        self._slots = max(len(request.prompt_tokens) + request.max_new_tokens for request in requests)
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._logprobs: list[list[float]] = [[] for _ in requests]
        self._results: dict[int, SampleResult] = {}
        self._last: dict[tuple[int, ...], Tensor] = {}
        """By prompt, the hidden state [D] from which the first token is drawn."""
        self._device = sampler._model.device
        self._rows: list[int] = []
        self._lengths_B = torch.empty(0, dtype=torch.long, device=self._device)
        self._places_B = self._lengths_B
        self._uniforms_BT = torch.empty(0, self._new_tokens, device=self._device)

    def run(self) -> Iterator[tuple[int, SampleResult | None]]:
        """Each response as it ends, with its place; (-1, None) after every token."""
        told = 0
        for _ in self.steps():
            ended = list(self._results)[told:]
            told += len(ended)
            yield from ((i, self._results[i]) for i in ended)
            yield -1, None

    def steps(self) -> Iterator[None]:
        """One token more for each row; between two steps others may use the model."""
        request = self._requests[0]
        hidden_BD = torch.empty(0)
        while self._rows or self._waiting:
            if self._has_room():
                new_BD = self._admit()
                hidden_BD = torch.cat([hidden_BD, new_BD]) if len(hidden_BD) else new_BD
            logits_BV = self._model.get_output_embeddings()(hidden_BD).float()
            steps_B1 = (self._places_B - self._lengths_B)[:, None]
            tokens_B, logprobs_B = draw_tokens(
                logits_BV, self._uniforms_BT.gather(1, steps_B1)[:, 0], request.temperature, request.top_p
            )
            alive = self._record(tokens_B.tolist(), logprobs_B.tolist())
            yield
            tokens_B = self._compact(alive, tokens_B)
            hidden_BD = self._decode(tokens_B) if alive else torch.empty(0)

    def _has_room(self) -> bool:
        """A prompt costs a pass of its own, so a few rows are filled at a time."""
        free = self._capacity - len(self._rows)
        return bool(self._waiting) and (not self._rows or free >= max(1, self._capacity // 8))

    def _admit(self) -> Tensor:
        """Give free rows to waiting requests; the last hidden states of their prompts [new rows, D]."""
        held = {self._requests[i].prompt_tokens: row for row, i in enumerate(self._rows)}
        first = len(self._rows)
        new = [self._waiting.popleft() for _ in range(min(self._capacity - first, len(self._waiting)))]
        prompts = [self._requests[i].prompt_tokens for i in new]
        missing = {prompt: first + prompts.index(prompt) for prompt in dict.fromkeys(prompts) if prompt not in held}
        self._prefill(missing)
        for row, prompt in enumerate(prompts, first):
            source = held.setdefault(prompt, row)
            if source != row:
                self._cache.copy_row(source, row, len(prompt))
        self._rows += new
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        self._lengths_B = torch.cat([self._lengths_B, lengths])
        self._places_B = torch.cat([self._places_B, lengths])
        self._uniforms_BT = torch.cat([self._uniforms_BT, self._drawn_for(new)])
        return torch.stack([self._last[prompt] for prompt in prompts])

    def _prefill(self, rows: dict[tuple[int, ...], int]) -> None:
        """Run these prompts, what they share once, each into its row."""
        prompts = list(rows)
        for run in pack(prompts, _PREFIX_NODES):
            tree = PrefixTree.of([prompts[i] for i in run.places]).to(self._device)
            prefix = DynamicCache()
            hidden_ND = self._model.model(**tree.model_inputs(), past_key_values=prefix).last_hidden_state[0]
            if not self._last:
                self._cache = SlotCache.empty_like(prefix, self._capacity, self._slots)
            for i, path in zip(run.places, tree.paths, strict=True):
                self._cache.copy_prefix(rows[prompts[i]], prefix, path)
                self._last[prompts[i]] = hidden_ND[path[-1]]

    def _drawn_for(self, new: list[int]) -> Tensor:
        """The uniforms of these requests [new rows, T]; how many a request has depends on itself alone."""
        rows = [uniforms([self._requests[i].seed], self._requests[i].max_new_tokens)[0] for i in new]
        return torch.stack([pad(row, (0, self._new_tokens - len(row))) for row in rows]).to(self._device)

    def _decode(self, tokens_B: Tensor) -> Tensor:
        """Write the tokens behind their sequences; hidden states [B, D] from which the next ones are drawn."""
        mask = self._cache.aim(self._places_B)
        output = self._model.model(
            input_ids=tokens_B[:, None],
            position_ids=self._places_B[:, None],
            attention_mask=mask,
            past_key_values=self._cache,
        )
        self._places_B = self._places_B + 1
        return output.last_hidden_state[:, -1]

    def _record(self, tokens: list[int], logprobs: list[float]) -> list[int]:
        """Append one token per row; the rows that go on."""
        alive = []
        for row, (token, logprob) in enumerate(zip(tokens, logprobs, strict=True)):
            i = self._rows[row]
            self._tokens[i].append(token)
            self._logprobs[i].append(logprob)
            reason = self._finish_reason(i)
            if reason is None:
                alive.append(row)
            else:
                self._results[i] = self._result(i, reason)
        return alive

    def _finish_reason(self, i: int) -> FinishReason | None:
        request, tokens = self._requests[i], self._tokens[i]
        if tokens[-1] in self._sampler._stop_ids:
            return "stop"
        if request.stop and any(stop in response_text(self._sampler._tokenizer, tokens) for stop in request.stop):
            return "stop"
        return "length" if len(tokens) >= request.max_new_tokens else None

    def _result(self, i: int, reason: FinishReason) -> SampleResult:
        tokens, logprobs = tuple(self._tokens[i]), tuple(self._logprobs[i])
        text = response_text(self._sampler._tokenizer, tokens, self._requests[i].stop)
        return SampleResult(tokens, logprobs, text, reason, self._sampler.version)

    def _compact(self, alive: list[int], tokens_B: Tensor) -> Tensor:
        """Let finished rows leave: rows from the end move into the holes, so that little of the cache is copied."""
        if len(alive) == len(self._rows):
            return tokens_B
        order = filled_holes(alive)
        for place, row in enumerate(order):
            if place != row:
                self._cache.copy_row(row, place, int(self._places_B[row]))
        self._rows = [self._rows[row] for row in order]
        self._lengths_B, self._places_B = self._lengths_B[order], self._places_B[order]
        self._uniforms_BT = self._uniforms_BT[order]
        return tokens_B[order]


def filled_holes(alive: list[int]) -> list[int]:
    """The rows of `alive` (ascending), reordered so that as many as possible stay where they are: [0, 2, 3] -> [0, 3, 2]."""
    order = list(range(len(alive)))
    late = [row for row in alive if row >= len(alive)]
    holes = sorted(set(order) - set(alive))
    for hole, row in zip(holes, late, strict=True):
        order[hole] = row
    return order


def stop_token_ids(generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that ends a response: the tokenizer's and those of the model's generation config."""
    configured = generation.eos_token_id if generation else None
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(i for i in [*ids, tokenizer.eos_token_id] if i is not None)
