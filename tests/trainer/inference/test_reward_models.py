"""A reward model gives the same scores as stock transformers, also if other texts are in the same pass."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from trainer.contracts import Message
from trainer.inference import reward_models
from trainer.inference.models import ModelInvalid, load_scalar, load_tokenizer
from trainer.inference.reward_models import RewardModel

TALKS = [
    [("user", "Name a colour."), ("assistant", text)] for text in ("Red.", "Blue, I would say.", "Red.", "green " * 40)
]


@pytest.fixture(scope="module")
def folder(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "scalar"
    load_scalar(tiny_dir, seed=3).save_pretrained(out)
    load_tokenizer(tiny_dir).save_pretrained(out)
    return out


def scores(folder: Path, talks: Sequence[Sequence[tuple[str, str]]], max_tokens: int = 2048) -> list[float | str]:
    return asyncio.run(RewardModel(folder).score(talks, max_tokens))


def stock(folder: Path, talk: Sequence[tuple[str, str]]) -> float:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": role, "content": content} for role, content in talk]
    ids = tokenizer(
        tokenizer.apply_chat_template(messages, tokenize=False), return_tensors="pt", add_special_tokens=False
    )
    with torch.inference_mode():
        return float(model(ids["input_ids"]).logits[0, 0])


def test_scores_are_those_of_stock_transformers(folder: Path) -> None:
    found = scores(folder, TALKS)
    assert found == pytest.approx([stock(folder, talk) for talk in TALKS], abs=1e-5)
    assert found[0] == found[2] != found[1]


def test_what_shares_a_pass_changes_no_score(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = scores(folder, TALKS)
    monkeypatch.setattr(reward_models, "AT_ONCE", 1)
    assert scores(folder, TALKS) == pytest.approx(together, abs=1e-5)


def test_a_response_beyond_what_it_reads_has_no_score(folder: Path) -> None:
    short, long = scores(folder, [TALKS[0], TALKS[3]], max_tokens=60)
    assert isinstance(short, float) and isinstance(long, str) and long.endswith("the reward model reads 60")


def test_a_language_model_is_no_reward_model(tiny_dir: Path) -> None:
    with pytest.raises(ModelInvalid, match="without a head that scores"):
        RewardModel(tiny_dir)


def test_the_offset_that_training_wrote_is_taken_off_wherever_a_model_scores(folder: Path, tmp_path: Path) -> None:
    centred = tmp_path / "centred"
    shutil.copytree(folder, centred)
    (centred / "reward.json").write_text('{"offset": 0.25}')
    asked = [Message(role="user", content="Name a colour.")]
    model = RewardModel(centred)
    expected = [stock(folder, talk) - 0.25 for talk in TALKS[:2]]
    assert model.scores(asked, [TALKS[0][1][1], TALKS[1][1][1]]) == pytest.approx(expected, abs=1e-5)
    assert asyncio.run(model.score(TALKS[:2], 2048)) == pytest.approx(expected, abs=1e-5)
    (centred / "reward.json").write_text("[]")
    with pytest.raises(ModelInvalid, match="offset of the scores cannot be read"):
        RewardModel(centred)


def test_a_tokenizer_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    tokenizer = load_tokenizer(folder)
    tokenizer.add_tokens([f"<|new{i}|>" for i in range(9)])
    tokenizer.save_pretrained(other)
    with pytest.raises(ModelInvalid, match="the tokenizer is another model's: it gives tokens up to"):
        RewardModel(other)
