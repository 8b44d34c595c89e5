"""Log-probabilities equal those of stock transformers, embeddings are unit vectors, and a job reports its costs."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from trainer.contracts import Message
from trainer.weights import embed
from trainer.weights.logprobs import Measure, measured
from trainer.weights.resources import process_usage

PROMPT = [Message(role="user", content="Name a colour.")]


def test_log_probabilities_are_those_of_stock_transformers(tiny_dir: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    answers = ["Red.", "Blue, I would say.", "x" * 3000]
    item: dict[str, Any] = {"key": "e", "messages": [message.model_dump() for message in PROMPT]}
    item["responses"] = [{"id": name, "text": text} for name, text in zip("abc", answers, strict=True)]
    found = measured(Measure(tiny_dir), item, per_token=True)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny_dir), AutoTokenizer.from_pretrained(tiny_dir)
    begun = tokenizer.apply_chat_template(item["messages"], add_generation_prompt=True, tokenize=False)
    start = len(tokenizer(begun, add_special_tokens=False)["input_ids"])
    for name, text in (("a", answers[0]), ("b", answers[1])):
        ids = tokenizer(f"{begun}{text}<|end|>", add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model(ids).logits[0, start - 1 : -1].log_softmax(-1)
        expected = logits.gather(1, ids[0, start:, None])[:, 0]
        assert found["log_probs"][name]["each"] == pytest.approx(expected.tolist(), abs=1e-4)
        assert found["log_probs"][name]["sum"] == pytest.approx(float(expected.sum()), abs=1e-3)
        assert found["log_probs"][name]["tokens"] == len(expected)
    assert list(found["problems"]) == ["c"] and "the model sees 2,048" in found["problems"]["c"]


def test_embeddings_are_unit_vectors_by_the_names_of_the_texts() -> None:
    stored: list[Any] = []
    items = [
        {"key": "e0", "texts": [{"id": "a", "text": "red"}, {"id": "b", "text": "blue"}]},
        {"key": "e1", "texts": []},
    ]
    client = SimpleNamespace(items=lambda: iter(items), store=stored.extend, phase="")
    outcome = embed.work(client)  # type: ignore[arg-type]
    assert [row["key"] for row in stored] == ["e0", "e1"] and stored[1]["vectors"] == {}
    vector = np.frombuffer(base64.b64decode(stored[0]["vectors"]["a"]), dtype="<f2").astype(float)
    assert len(vector) == outcome["width"] == 384 and np.linalg.norm(vector) == pytest.approx(1, abs=1e-2)


def test_a_process_tells_what_it_has_used() -> None:
    used = process_usage()
    assert used.cpu_seconds > 0 and used.memory_bytes > 10**7 and used.processors >= 1
    assert used.device and (used.gpu_bytes is None) == (used.device == "CPU")
