"""A sampler inside this process: a transformers model with batched decoding."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from .attention import use_grouped_attention
from .cache import SlotCache, prompt_mask
from .draw import draw_tokens, uniforms
from .prefix import PrefixTree, pack
from .sampling import FinishReason, SampleRequest, SampleResult, SamplingProgress

_PREFIX_NODES = 512


class LocalSampler:
    """Computes shared prompt prefixes once, decodes a whole batch per step and drops finished rows from it.

    Requests of one batch must agree in temperature and top-p; `sample` sorts them into batches of at most `max_batch`.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_batch: int = 64) -> None:
        use_grouped_attention(model)
        self._model = model.eval().requires_grad_(False)
        self._tokenizer = tokenizer
        self._max_batch = max_batch
        self._stop_ids = stop_token_ids(model, tokenizer)
        self.version = 0

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Copy the named parameters in. Raises KeyError for a name this model does not have."""
        mine = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, tensor in weights:
                mine[name].copy_(tensor)
        self.version = version

    def read_weights(self, names: Iterable[str]) -> dict[str, Tensor]:
        """The named parameters as they are held here, to prove that a push arrived."""
        mine = dict(self._model.named_parameters())
        return {name: mine[name].detach() for name in names}

    @torch.inference_mode()
    def sample(self, requests: Sequence[SampleRequest], progress: SamplingProgress | None = None) -> list[SampleResult]:
        results: list[SampleResult | None] = [None] * len(requests)
        finished = 0

        def report(count: int) -> None:
            if progress:
                progress(finished + count, len(requests))

        for places in self._batches(requests):
            batch = _Batch(self, [requests[i] for i in places])
            for place, result in zip(places, batch.run(report), strict=True):
                results[place] = result
            finished += len(places)
        return [result for result in results if result is not None]

    def _batches(self, requests: Sequence[SampleRequest]) -> Iterable[list[int]]:
        """Places of the requests, grouped by how they are drawn, then cut to the batch size."""
        alike: dict[tuple[float, float], list[int]] = {}
        for place, request in enumerate(requests):
            alike.setdefault((request.temperature, request.top_p), []).append(place)
        for places in alike.values():
            for start in range(0, len(places), self._max_batch):
                yield places[start : start + self._max_batch]


class _Batch:
    """One batch while it is decoded. Row r of the tensors belongs to request `self._rows[r]`."""

    def __init__(self, sampler: LocalSampler, requests: list[SampleRequest]) -> None:
        self._sampler, self._requests = sampler, requests
        self._rows = list(range(len(requests)))
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._logprobs: list[list[float]] = [[] for _ in requests]
        self._results: dict[int, SampleResult] = {}
        self._new_tokens = max(request.max_new_tokens for request in requests)
        self._lengths_B = torch.tensor([len(request.prompt_tokens) for request in requests])
        self._prompt_slots = int(self._lengths_B.max())
        self._mask_BS = prompt_mask(self._lengths_B, self._prompt_slots, self._new_tokens)
        self._uniforms_BT = uniforms([request.seed for request in requests], self._new_tokens)

    def run(self, report: Any) -> list[SampleResult]:
        hidden_BD = self._prefill()
        for step in range(self._new_tokens):
            logits_BV = self._sampler._model.get_output_embeddings()(hidden_BD).float()
            request = self._requests[0]
            tokens_B, logprobs_B = draw_tokens(
                logits_BV, self._uniforms_BT[:, step], request.temperature, request.top_p
            )
            alive = self._record(tokens_B.tolist(), logprobs_B.tolist())
            report(len(self._results))
            if not alive:
                break
            tokens_B = self._compact(alive, tokens_B)
            hidden_BD = self._decode(tokens_B, step)
        return [self._results[i] for i in range(len(self._requests))]

    def _prefill(self) -> Tensor:
        """Run every distinct prompt once, into the slots of its rows; last hidden states [B, D]."""
        prompts = list(dict.fromkeys(request.prompt_tokens for request in self._requests))
        rows_of = {prompt: [] for prompt in prompts}
        for row, request in enumerate(self._requests):
            rows_of[request.prompt_tokens].append(row)
        last: dict[int, Tensor] = {}
        for run in pack(prompts, _PREFIX_NODES):
            tree = PrefixTree.of([prompts[i] for i in run.places])
            prefix = DynamicCache()
            hidden_ND = self._sampler._model.model(**tree.model_inputs(), past_key_values=prefix).last_hidden_state[0]
            if not last:
                self._cache = SlotCache.empty_like(prefix, len(self._requests), self._prompt_slots, self._new_tokens)
            for i, path in zip(run.places, tree.paths, strict=True):
                for row in rows_of[prompts[i]]:
                    self._cache.copy_prefix(row, prefix, path)
                    last[row] = hidden_ND[path[-1]]
        return torch.stack([last[row] for row in self._rows])

    def _decode(self, tokens_B: Tensor, step: int) -> Tensor:
        seen = self._prompt_slots + step + 1
        output = self._sampler._model.model(
            input_ids=tokens_B[:, None],
            position_ids=(self._lengths_B + step)[:, None],
            attention_mask=self._mask_BS[:, None, None, :seen],
            past_key_values=self._cache,
        )
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
        if request.stop and any(stop in self._text(tokens) for stop in request.stop):
            return "stop"
        return "length" if len(tokens) >= request.max_new_tokens else None

    def _result(self, i: int, reason: FinishReason) -> SampleResult:
        text = self._text(self._tokens[i])
        for stop in self._requests[i].stop:
            text = text.partition(stop)[0]
        version = self._sampler.version
        return SampleResult(tuple(self._tokens[i]), tuple(self._logprobs[i]), text, reason, version)

    def _text(self, tokens: list[int]) -> str:
        return str(self._sampler._tokenizer.decode(tokens, skip_special_tokens=True))

    def _compact(self, alive: list[int], tokens_B: Tensor) -> Tensor:
        """Let finished rows leave: rows from the end move into the holes, so that little of the cache is copied."""
        if len(alive) == len(self._rows):
            return tokens_B
        order = filled_holes(alive)
        self._cache.keep(order)
        self._rows = [self._rows[row] for row in order]
        self._lengths_B, self._mask_BS = self._lengths_B[order], self._mask_BS[order]
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


def stop_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that ends a response: the tokenizer's and those of the model's generation config."""
    configured = model.generation_config.eos_token_id if model.generation_config else None
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(i for i in [*ids, tokenizer.eos_token_id] if i is not None)
