"""A sampler inside this process: a transformers model with continuous batching."""

import copy
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from .batch_invariance import unit_of_rows
from .cache import SlotCache
from .chat import response_text
from .checksum import Checksum, digest_of
from .decoders import body, make_ready, masks, tree_inputs
from .draw import draw_tokens, uniforms
from .prefix import PrefixTree, pack
from .products import laid_out
from .quantised import held_tensors, layers_of
from .sampling import FinishReason, SampleFinished, SampleRequest, SampleResult, SamplingProgress, tokens_of
from .weights import Weights

_PREFIX_NODES = 2048
"""Tokens of one pass over prompts. Prompts of one pass share their beginning, also with different scaffolds."""
_WIDTH = 64
FEWEST_ROWS, FEWEST_PASSES = 8, 16
"""The least numbers of rows and of passes for which weights are laid out."""


class LocalSampler:
    """Computes shared prompt prefixes once and decodes up to `max_batch` responses side by side.

    A response that ends makes room at once, and the next request takes it: short responses do not wait for long ones.
    Only requests that agree in temperature and top-p are decoded together.
    """

    versions_at_once = float("inf")

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_batch: int = 64) -> None:
        make_ready(model)
        self._model = model.eval().requires_grad_(False)
        self._parameters: Weights = held_tensors(model)
        self.rounded = layers_of(model)
        """Names of weights that the model holds as whole numbers, each with its largest number; it accepts them only in this form
        (`quantised.as_held`).
        """
        self._tokenizer = tokenizer
        self._max_batch = max_batch
        self._unit: int | None = None
        self._stop_ids = stop_token_ids(model.generation_config, tokenizer)
        self._spare = [self._model]
        """Models with which no version of the weights is open."""
        self.version = self.generated = 0
        self.follows = False
        """Whether the parameters are those of a model under training, in the same memory."""

    def follow(self, trained: Any) -> None:
        """Sample from now on with the memory of `trained`, which has the same parameters. A change of them changes the sampler too,
        so nothing may sample during a change. Raises ValueError if a parameter differs.
        """
        theirs = dict(trained.named_parameters())
        for name, mine in self._parameters.items():
            own, other = mine.data, theirs[name].data
            if (own.shape, own.dtype, own.device) != (other.shape, other.dtype, other.device):
                raise ValueError(f"{name} is not of one shape, precision and device in both models")
            mine.data = other
        self.follows = True

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> str:
        """Copy the named parameters in. Raises KeyError for a name this model does not have."""
        self.version = version
        return _followed(self._parameters, weights) if self.follows else _load(self._parameters, weights)

    def rest(self) -> None:
        """Nothing to do: keys and values are freed with the last response."""

    def close(self) -> None:
        """Nothing to do, because everything is in this process."""

    @property
    def unit(self) -> int:
        """Passes of a running version have a multiple of this many rows; measured before the first one."""
        if self._unit is None:
            self._unit = unit_of_rows(self._model, self._max_batch)
        return self._unit

    def open(self, weights: Iterable[tuple[str, Tensor]], version: int) -> tuple["LocalRunning", str]:
        """Versions that are open together share the parameters that are not in `weights`."""
        given = dict(weights)
        model = self._spare.pop() if self._spare else _beside(self._model, given)
        return LocalRunning(self, model, version), _load(dict(model.named_parameters()), given.items())

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]:
        results: dict[int, SampleResult] = {}
        for places in _alike(requests):
            rows = min(self._max_batch, len(places))
            stream = _Stream(self, self._model, self.version, rows)
            for place in places:
                stream.join(place, requests[place])
            with laid_out(self._model, rows) if _pays([requests[place] for place in places], rows) else nullcontext():
                while stream.busy:
                    for place, result in stream.step():
                        results[place] = result
                        if finished:
                            finished(place, result)
                    if progress:
                        progress(len(results), len(requests))
        self.generated += tokens_of(results.values())
        return [results[place] for place in range(len(requests))]

    def stream(self, request: SampleRequest) -> Iterator[tuple[tuple[int, ...], SampleResult | None]]:
        """The response of `sample` token by token: the tokens so far and None, at the end with the result."""
        stream = _Stream(self, self._model, self.version, 1)
        stream.join(0, request)
        ended: list[tuple[Any, SampleResult]] = []
        while not ended:
            ended = stream.step()
            yield (ended[0][1].tokens, ended[0][1]) if ended else (tuple(stream.tokens_of(0)), None)


def _pays(requests: Sequence[SampleRequest], rows: int) -> bool:
    """Whether enough passes of enough rows follow that laying the weights out for them pays off."""
    return rows >= FEWEST_ROWS and max(request.max_new_tokens for request in requests) >= FEWEST_PASSES


def _load(mine: Weights, weights: Iterable[tuple[str, Tensor]]) -> str:
    found = Checksum()
    with torch.no_grad():
        for name, tensor in weights:
            if mine[name].dtype == torch.int8 != tensor.dtype:
                raise ValueError(
                    f"{name} is held as whole numbers and was given in {tensor.dtype}; round it first (quantised.as_held)"
                )
            mine[name].copy_(tensor)
            found.add(name, mine[name])
    return found.hexdigest()


def _followed(mine: Weights, weights: Iterable[tuple[str, Tensor]]) -> str:
    """The checksum of what the model holds; raises ValueError for a tensor that is not its own memory."""
    for name, tensor in weights:
        if not mine[name].is_set_to(tensor):
            raise ValueError(f"{name} is not the parameter that the sampler follows")
    return digest_of(mine)


def _beside(model: PreTrainedModel, own: Collection[str]) -> PreTrainedModel:
    """A second model that has its own parameters `own` and shares the others with `model`."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for name, tensor in named if name not in own})


def _alike(requests: Sequence[SampleRequest]) -> Iterable[list[int]]:
    """Places of the requests, grouped by temperature and top-p."""
    alike: dict[tuple[float, float], list[int]] = {}
    for place, request in enumerate(requests):
        alike.setdefault((request.temperature, request.top_p), []).append(place)
    return alike.values()


class LocalRunning:
    """Responses of one version of the weights; each is the same to the last bit, with any others beside it.

    Sums over other numbers of terms round differently, so nothing may depend on the neighbours: prompts are read one by
    one, and passes keep to shapes for which `tests/trainer/inference/test_joining.py` checks that every bit is the same.
    """

    def __init__(self, sampler: LocalSampler, model: PreTrainedModel, version: int) -> None:
        self._sampler, self._model, self._version = sampler, model, version
        self._streams: dict[tuple[float, float], _Stream] = {}

    def join(self, name: Hashable, request: SampleRequest) -> None:
        drawn = (request.temperature, request.top_p)
        if drawn not in self._streams:
            self._streams[drawn] = _Stream(
                self._sampler, self._model, self._version, self._sampler._max_batch, steady=True
            )
        self._streams[drawn].join(name, request)

    def step(self) -> list[tuple[Hashable, SampleResult]]:
        return [ended for stream in self._streams.values() if stream.busy for ended in stream.step()]

    def leave(self, names: Collection[Hashable]) -> None:
        for stream in self._streams.values():
            stream.leave(names)

    def close(self) -> None:
        self._streams.clear()
        self._sampler._spare.append(self._model)


class _Stream:
    """Requests on their way through the model. Row r of the tensors belongs to request `self._rows[r]`.

    With `steady` no result depends on the other rows, at the cost of a few rows that are computed for nothing.
    """

    def __init__(
        self, sampler: LocalSampler, model: PreTrainedModel, version: int, capacity: int, steady: bool = False
    ) -> None:
        self._sampler, self._model, self._version = sampler, model, version
        self._capacity, self._steady = capacity, steady
        self._device = model.device
        self._requests: dict[Hashable, SampleRequest] = {}
        self._waiting: deque[Hashable] = deque()
        self._rows: list[Hashable] = []
        self._tokens: dict[Hashable, list[int]] = {}
        self._logprobs: dict[Hashable, list[float]] = {}
        self._uniforms: dict[Hashable, Any] = {}
        """The uniforms of each request's tokens [max_new_tokens]; their number depends on the request alone."""
        self._last: dict[tuple[int, ...], Tensor] = {}
        """For each prompt in a row, the hidden state [D] from which the first token is drawn."""
        self._cache: SlotCache | None = None
        self._places_B = torch.empty(0, dtype=torch.long, device=self._device)
        self._drawn_B = self._places_B
        """The tokens drawn last, which the model has not read yet."""

    @property
    def busy(self) -> bool:
        return bool(self._rows or self._waiting)

    def tokens_of(self, name: Hashable) -> list[int]:
        return self._tokens[name]

    def join(self, name: Hashable, request: SampleRequest) -> None:
        self._requests[name] = request
        self._tokens[name], self._logprobs[name] = [], []
        self._uniforms[name] = uniforms([request.seed], request.max_new_tokens)[0].numpy()
        self._waiting.append(name)

    @torch.inference_mode()
    def leave(self, names: Collection[Hashable]) -> None:
        self._waiting = deque(name for name in self._waiting if name not in names)
        alive = [row for row, name in enumerate(self._rows) if name not in names]
        self._drawn_B = self._compact(alive, self._drawn_B)
        for name in names:
            self._forget(name)

    @torch.inference_mode()
    def step(self) -> list[tuple[Any, SampleResult]]:
        """Draw one more token for each row; between two steps others may use the model."""
        hidden = [self._decode()] if self._rows else []
        if self._has_room():
            hidden.append(self._admit())
        hidden_BD = torch.cat(hidden)
        request = self._requests[self._rows[0]]
        logits_BV = self._model.get_output_embeddings()(self._padded(hidden_BD))[: len(hidden_BD)].float()
        drawn = [self._uniforms[name][len(self._tokens[name])] for name in self._rows]
        uniforms_B = torch.tensor(drawn, device=self._device)
        tokens_B, logprobs_B = draw_tokens(logits_BV, uniforms_B, request.temperature, request.top_p)
        alive, ended = self._record(tokens_B.tolist(), logprobs_B.tolist())
        self._drawn_B = self._compact(alive, tokens_B)
        return ended

    def _has_room(self) -> bool:
        """Whether rows should be filled now. A prompt costs its own pass, so rows are filled a few at a time; a worker's rows are
        filled when requests wait.
        """
        free = self._capacity - len(self._rows)
        return bool(self._waiting) and (not self._rows or free >= (1 if self._steady else max(1, self._capacity // 8)))

    def _admit(self) -> Tensor:
        """Give free rows to waiting requests; returns the last hidden states of their prompts [new rows, D]."""
        held = {self._requests[name].prompt_tokens: row for row, name in enumerate(self._rows)}
        first = len(self._rows)
        new = [self._waiting.popleft() for _ in range(min(self._capacity - first, len(self._waiting)))]
        prompts = [self._requests[name].prompt_tokens for name in new]
        missing = {prompt: first + prompts.index(prompt) for prompt in dict.fromkeys(prompts) if prompt not in held}
        self._prefill(missing, first + len(new))
        for row, prompt in enumerate(prompts, first):
            source = held.setdefault(prompt, row)
            if source != row:
                self._slots.copy_row(source, row, len(prompt))
        self._rows += new
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        self._places_B = torch.cat([self._places_B, lengths])
        self._last = {prompt: self._last[prompt] for prompt in held}
        return torch.stack([self._last[prompt] for prompt in prompts])

    def _prefill(self, rows: dict[tuple[int, ...], int], used: int) -> None:
        """Run these prompts, each into its row of the `used` ones: shared beginnings once or, if steady, each prompt alone."""
        prompts = list(rows)
        runs = [[i] for i in range(len(prompts))] if self._steady else [r.places for r in pack(prompts, _PREFIX_NODES)]
        if not runs:
            self._reserve(used)
        for places in runs:
            tree = PrefixTree.of([prompts[i] for i in places]).to(self._device)
            prefix = DynamicCache()
            hidden_ND = body(self._model)(**tree_inputs(self._model, tree), past_key_values=prefix).last_hidden_state[0]
            self._reserve(used, prefix)
            for i, path in zip(places, tree.paths, strict=True):
                self._slots.copy_prefix(rows[prompts[i]], prefix, path)
                self._last[prompts[i]] = hidden_ND[path[-1]].clone()  # a view would keep all N

    @property
    def _slots(self) -> SlotCache:
        assert self._cache is not None  # noqa: S101 - made with the first prompt
        return self._cache

    def _reserve(self, used: int, like: DynamicCache | None = None) -> None:
        """Make room for `used` rows, each as long as the longest known request may become."""
        longest = max(len(request.prompt_tokens) + request.max_new_tokens for request in self._requests.values())
        slots = -(-longest // self._width) * self._width
        rows = self._shape(used)
        if self._cache is None:
            assert like is not None  # noqa: S101 - the first request has a prompt to read
            self._cache = SlotCache.empty_like(like, rows, slots)
            return
        had_rows, had_slots = self._cache.size
        if rows > had_rows or slots > had_slots:
            rows = max(had_rows, self._shape(min(self._capacity, 2 * rows)) if rows > had_rows else 0)
            self._cache.grow(rows, max(had_slots, slots))

    @property
    def _width(self) -> int:
        return _WIDTH if self._steady else 1

    def _shape(self, rows: int) -> int:
        """The number of rows of a pass for which the sums of each row are added in the same order, for any number of rows."""
        unit = self._sampler.unit if self._steady else 1
        return -(-rows // unit) * unit

    def _padded(self, rows_B: Tensor) -> Tensor:
        """The rows, padded with zeros up to the rows of a pass."""
        missing = self._shape(len(rows_B)) - len(rows_B)
        return torch.cat([rows_B, rows_B.new_zeros(missing, *rows_B.shape[1:])]) if missing else rows_B

    def _decode(self) -> Tensor:
        """Write the drawn tokens behind their sequences; returns hidden states [B, D] from which the next tokens are drawn."""
        places_B = self._padded(self._places_B)
        seen = self._slots.aim(places_B, self._width)
        slots = torch.arange(seen.shape[-1], device=self._device)
        distance = (places_B[:, None] - slots)[:, None, None]
        output = body(self._model)(
            input_ids=self._padded(self._drawn_B)[:, None],
            position_ids=places_B[:, None],
            attention_mask=masks(self._model.config, seen, distance),
            past_key_values=self._cache,
        )
        self._places_B = self._places_B + 1
        hidden: Tensor = output.last_hidden_state[: len(self._rows), -1]
        return hidden

    def _record(self, tokens: list[int], logprobs: list[float]) -> tuple[list[int], list[tuple[Any, SampleResult]]]:
        """Append one token per row; returns the rows that continue, and the results that have ended."""
        alive, ended = [], []
        for row, (token, logprob) in enumerate(zip(tokens, logprobs, strict=True)):
            name = self._rows[row]
            self._tokens[name].append(token)
            self._logprobs[name].append(logprob)
            reason = self._finish_reason(name)
            if reason is None:
                alive.append(row)
            else:
                ended.append((name, self._result(name, reason)))
                self._forget(name)
        return alive, ended

    def _finish_reason(self, name: Hashable) -> FinishReason | None:
        request, tokens = self._requests[name], self._tokens[name]
        if tokens[-1] in self._sampler._stop_ids:
            return "stop"
        if request.stop and any(stop in response_text(self._sampler._tokenizer, tokens) for stop in request.stop):
            return "stop"
        return "length" if len(tokens) >= request.max_new_tokens else None

    def _result(self, name: Hashable, reason: FinishReason) -> SampleResult:
        tokens, logprobs = tuple(self._tokens[name]), tuple(self._logprobs[name])
        text = response_text(self._sampler._tokenizer, tokens, self._requests[name].stop)
        return SampleResult(tokens, logprobs, text, reason, self._version)

    def _forget(self, name: Hashable) -> None:
        for kept in (self._requests, self._tokens, self._logprobs, self._uniforms):
            kept.pop(name, None)

    def _compact(self, alive: list[int], tokens_B: Tensor) -> Tensor:
        """Remove finished rows: rows from the end move into the holes, so that little of the cache is copied."""
        if len(alive) == len(self._rows):
            return tokens_B
        order = filled_holes(alive)
        for place, row in enumerate(order):
            if place != row:
                self._slots.copy_row(row, place, int(self._places_B[row]))
        self._rows = [self._rows[row] for row in order]
        self._places_B = self._places_B[order]
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
    """Every token that ends a response: those of the tokenizer and of the model's generation config."""
    configured = generation.eos_token_id if generation else None
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(i for i in [*ids, tokenizer.eos_token_id] if i is not None)
