"""A model generates answers to prompts."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig, resolve
from trainer.contracts import Message
from trainer.inference.adapters import whole_directory
from trainer.inference.build import build_sampler
from trainer.inference.chat import encode_prompt
from trainer.inference.models import load_tokenizer
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.seeding import derive_seed

from .client import JobClient


def work(client: JobClient) -> Mapping[str, Any]:
    """One result per item: `{"key", "responses": [{"text", "finish_reason", "tokens"}]}`, or `{"key", "problem"}`."""
    params = client.assignment.params
    config = resolve("policy", {"sampler": params["sampler"]})
    assert isinstance(config, PolicyConfig)  # noqa: S101  # that is what the name says
    folder = whole_directory(client.assignment.models["model"], Path(client.assignment.folder) / "merged")
    tokenizer = load_tokenizer(folder)
    sampler = build_sampler(config, folder, tokenizer)
    try:
        client.phase = "generating"
        at_once = max(1, params["sampler"]["max_batch"] // params["samples"])
        items = client.items()
        while together := list(islice(items, at_once)):
            client.store(list(answered(client, sampler, tokenizer, together, longest(folder))))
    finally:
        sampler.close()
    return {}


def answered(
    client: JobClient, sampler: Sampler, tokenizer: Any, items: list[dict[str, Any]], longest: int
) -> Iterator[dict[str, Any]]:
    params = client.assignment.params
    prompts = [encode_prompt(tokenizer, [Message(**message) for message in item["messages"]]) for item in items]
    fits = [len(prompt) + params["max_new_tokens"] <= longest for prompt in prompts]
    requests = [
        SampleRequest(
            prompt,
            params["max_new_tokens"],
            params["temperature"],
            params["top_p"],
            tuple(params["stop"]),
            derive_seed(params["seed"], "generate", item["key"], sample),
        )
        for item, prompt, usable in zip(items, prompts, fits, strict=True)
        if usable
        for sample in range(params["samples"])
    ]
    results = iter(sampler.sample(requests, lambda done, total: client.check()) if requests else [])
    for item, prompt, usable in zip(items, prompts, fits, strict=True):
        if usable:
            yield {"key": item["key"], "responses": [_shown(next(results)) for _ in range(params["samples"])]}
        else:
            needed = len(prompt) + params["max_new_tokens"]
            yield {"key": item["key"], "problem": f"needs {needed:,} tokens and the model sees {longest:,}"}


def _shown(result: SampleResult) -> dict[str, Any]:
    return {"text": result.text, "finish_reason": result.finish_reason, "tokens": len(result.tokens)}


def longest(folder: Path) -> int:
    """The number of tokens that the model can see."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(str(folder), trust_remote_code=False).max_position_embeddings)
