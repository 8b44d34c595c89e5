"""Reward models: votes as targets, data that is left out, evaluation, and the use of the result by stock libraries."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from trainer.config.preferences import PreferenceData
from trainer.contracts import Example, ModelSource, Preference, Response
from trainer.inference.adapters import whole_directory
from trainer.loops.pairs.pair_reports import calibration_metrics, pair_metrics
from trainer.loops.pairs.preferences import Pair, prepare_pairs
from trainer.loops.session.errors import RunFailed

from ...running import run
from ..conftest import events_of, metrics_of, stage_recorder
from ..texts import make_config, preferences, user_messages, write_examples


def compared(*votes: int | None, texts: tuple[str, str] = ("good", "bad"), **more: Any) -> Example:
    """A pair with one rater for each vote. A vote below 0 is for the first answer; None means that the rater could not tell."""
    given = [
        Preference(a="a", b="b", strength=vote, verdict="cannot_assess" if vote is None else "compared", rater=f"r{i}")
        for i, vote in enumerate(votes)
    ]
    responses = tuple(Response(id=name, text=text) for name, text in zip("ab", texts, strict=True))
    return Example(key="k", prompt=user_messages("go"), responses=responses, preferences=tuple(given), **more)


def prepared(*examples: Example, **data: Any) -> list[Pair[str]]:
    settings = PreferenceData(**data)
    return prepare_pairs(examples, settings, lambda prompt, text: text, len, 99).train


def test_the_target_is_the_share_of_the_votes() -> None:
    (pair,) = prepared(compared(2, 3, -1, 0))
    assert (pair.chosen.response.text, pair.rejected.response.text) == ("bad", "good")
    assert (pair.target, pair.strength, pair.against) == (2.5 / 4, 2.5, 1.0)
    assert (pair.pro, pair.con, pair.ties, pair.first_chosen, pair.agreement) == (2, 1, 1, False, 2.5 / 4)
    (certain,) = prepared(compared(2, 3, -1, 0), labels="majority")
    assert certain.target == 1.0


def test_ties_are_left_out_or_equals() -> None:
    good = compared(-2)
    assert len(prepared(good, compared(0), compared(1, -1))) == 1
    targets = [pair.target for pair in prepared(good, compared(0), compared(1, -1), ties="half")]
    assert targets == [1.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("example", "why"),
    [
        (compared(0, 2, -2), "1 pair left out: a tie"),
        (compared(None, None), "1 pair left out: nobody could decide"),
        (compared(-2, texts=("same", "same")), "1 pair left out: both answers are the same"),
        (compared(-2, texts=("x" * 30, "y")), "1 pair left out: longer than data.max_tokens = 20"),
        (compared(), "no example of the training split has a comparison"),
    ],
)
def test_what_cannot_be_used_is_counted_by_reason(example: Example, why: str) -> None:
    with pytest.raises(RunFailed, match=why):
        prepared(example, max_tokens=20)


def test_the_loss_of_a_pair_is_the_mean_loss_over_its_votes(tiny_dir: Path, tmp_path: Path) -> None:
    """-p log q - (1 - p) log(1 - q) of the same scores, with a margin for the strength of each side."""
    example = compared(-3, -3, 1)
    losses = {}
    for name, data in (("share", {}), ("sure", {"labels": "majority"})):
        config = make_config("reward_model", steps=1, batch_size=1, centre=0.0, margin=0.1, data=data)
        assert run(config, write_examples([example], tmp_path / f"{name}.jsonl"), tiny_dir, tmp_path / name)
        losses[name] = metrics_of(tmp_path / name)
    margin = losses["share"][1, "train/margin"]
    assert margin == losses["sure"][1, "train/margin"]
    losses_of_votes = [-float(logsigmoid(torch.tensor(lead).double())) for lead in (margin - 0.3, -margin - 0.1)]
    assert losses["sure"][1, "train/loss"] == pytest.approx(losses_of_votes[0], abs=1e-6)
    expected = (2 * losses_of_votes[0] + losses_of_votes[1]) / 3
    assert losses["share"][1, "train/loss"] == pytest.approx(expected, abs=1e-6)


def test_intervals_draw_the_pairs_of_one_prompt_together() -> None:
    """Of two prompts, one has three pairs in the right order and the other has one in the wrong order: each is drawn twice in a quarter
    of the resamples."""
    (pair,) = prepared(compared(-2, domain="d"))
    other = replace(pair, prompt=user_messages("stop"))
    found = pair_metrics([pair, pair, other, pair], [1.0, 2.0, -1.0, 1.0])
    assert found["eval/accuracy"] == found["eval/domain/d"] == 0.75
    for place in ("eval/accuracy{}", "eval/domain{}/d", "eval/strength{}/2"):
        assert (found[place.format("_low")], found[place.format("_high")]) == (0.0, 1.0)
    values, _ = calibration_metrics([pair, pair, other, pair], [0.0, 0.0, -50.0, 0.0])
    assert (values["eval/brier_low"], values["eval/brier_high"]) == pytest.approx((0.25, 1.0))
    assert "eval/accuracy_low" not in pair_metrics([pair, pair], [1.0, 2.0])  # one prompt has no spread


@pytest.mark.slow
def test_domains_beyond_the_largest_are_measured_together():
    domains = [f"d{n}" for n in range(30) for _ in range(2 if n < 24 else 1)]
    (pair,) = prepared(compared(-2))
    pairs = [replace(pair, domain=domain) for domain in domains]
    found = pair_metrics(pairs, [1.0] * len(pairs))
    counts = {key.split("/")[-1]: n for key, n in found.items() if key.startswith("eval/domain_pairs/")}
    assert len(counts) == 25 and counts.pop("all smaller domains") == 6 and set(counts.values()) == {2}


def test_a_planted_preference_is_learnt_and_holds_for_pairs_never_seen(tiny_dir: Path, tmp_path: Path) -> None:
    config = make_config(
        "reward_model",
        steps=80,
        batch_size=16,
        optim={"lr": 2e-3},
        centre=0.05,
        evaluation={"every": 0, "max_examples": 100},
        checkpoint={"every": 80},
    )
    data = write_examples(preferences(300, 100), tmp_path / "data.jsonl")
    assert run(config, data, tiny_dir, tmp_path / "run")
    found = metrics_of(tmp_path / "run")
    assert 0.3 < found[0, "eval/accuracy"] < 0.7
    assert found[80, "eval/accuracy"] > 0.9
    assert found[80, "eval/accuracy_low"] < found[80, "eval/accuracy"] <= found[80, "eval/accuracy_high"]
    assert found[80, "eval/pairs"] == 100 == found[80, "eval/domain_pairs/odd"] + found[80, "eval/domain_pairs/even"]
    assert found[80, "eval/domain_low/odd"] < found[80, "eval/domain/odd"] <= found[80, "eval/domain_high/odd"]
    for name in ("eval/ece", "eval/brier"):
        assert 0 <= found[80, f"{name}_low"] <= found[80, name] <= found[80, f"{name}_high"], name
    assert found[80, "eval/loss"] < 0.3 and found[80, "eval/margin"] > 1
    assert abs(found[80, "baseline/majority"] - 0.5) < 0.15 and found[80, "baseline/length"] == 0.5
    scale = json.loads((tmp_path / "run" / "outputs" / "reward_model" / "reward.json").read_text())
    assert abs(scale["offset"]) < scale["scale"] and scale["texts"] == 600


def test_centring_draws_the_mean_score_to_zero(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(preferences(60, 20), tmp_path / "data.jsonl")
    means = {}
    for centre in (0.0, 1.0):
        more = {"steps": 30, "evaluation": {"every": 0}, "checkpoint": {"every": 30}, "optim": {"lr": 3e-3}}
        assert run(make_config("reward_model", centre=centre, **more), data, tiny_dir, tmp_path / str(centre))
        found = metrics_of(tmp_path / str(centre))
        means[centre] = abs(found[30, "eval/reward_mean"]) / found[30, "eval/reward_std"]
    assert means[1.0] < means[0.0]


def test_a_reward_model_is_trained_further_from_where_it_stands(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(preferences(40, 20), tmp_path / "data.jsonl")
    whole = {"name": "tiny", "lora": None}
    more = {"steps": 3, "evaluation": {"every": 0}, "optim": {"lr": 5e-3}}
    assert run(make_config("reward_model", model=whole, **more), data, tiny_dir, tmp_path / "first")
    first = tmp_path / "first" / "outputs" / "reward_model"
    assert run(make_config("reward_model", model={"name": "tiny"}, **more), data, first, tmp_path / "second")
    before, after = metrics_of(tmp_path / "first"), metrics_of(tmp_path / "second")
    for key in ("eval/reward_mean", "eval/reward_std", "eval/margin"):
        assert after[0, key] == pytest.approx(before[3, key], abs=1e-6), "its head was kept, not drawn anew"
    adapter = tmp_path / "second" / "outputs" / "reward_model"
    merged = whole_directory(ModelSource(path=str(first), adapters=(str(adapter),), head="scalar"), tmp_path / "merged")
    assert run(make_config("reward_model", **{**more, "steps": 1}), data, merged, tmp_path / "third")
    assert metrics_of(tmp_path / "third")[0, "eval/margin"] == pytest.approx(after[3, "eval/margin"], abs=1e-5)


def test_an_evaluation_shows_pairs_with_their_scores(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples([*preferences(4, 1), compared(-2, -1, 1, split="heldout")], tmp_path / "data.jsonl")
    assert run(make_config("reward_model", steps=1), data, tiny_dir, tmp_path / "run")
    shown = [e.data for e in events_of(tmp_path / "run") if e.data.kind == "rollouts"][-1].rollouts
    assert [(r.group, r.index, r.components["votes"]) for r in shown] == [(0, 0, 1), (0, 1, 0), (1, 0, 2), (1, 1, 1)]
    assert [r.response for r in shown[2:]] == ["good", "bad"]
    told = metrics_of(tmp_path / "run")
    leads = [shown[i].reward - shown[i + 1].reward for i in (0, 2)]
    assert told[1, "eval/margin"] == pytest.approx(sum(leads) / 2)
    assert told[1, "eval/accuracy"] == sum(lead > 0 for lead in leads) / 2
    assert (
        told[1, "baseline/human"] == 0.0
    )  # one against two: for each of the two who agree, the others are split, so none counts


@pytest.mark.parametrize("model", [{"lora": None}, {}, {"export": "merged"}], ids=["whole", "adapter", "merged"])
def test_stock_libraries_load_what_comes_out_and_give_equal_scores(
    model: dict[str, Any], tiny_dir: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    kept, keeping = stage_recorder()
    config = make_config("reward_model", steps=4, optim={"lr": 5e-3}, model={"name": "tiny", **model})
    data = write_examples(preferences(20, 8), tmp_path / "data.jsonl")
    assert run(config, data, tiny_dir, tmp_path / "run", make=keeping)
    folder = tmp_path / "run" / "outputs" / "reward_model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if (folder / "adapter_config.json").is_file():
        base = AutoModelForSequenceClassification.from_pretrained(tiny_dir, num_labels=1)
        loaded = PeftModel.from_pretrained(base, folder).eval()
    else:
        loaded = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1).eval()
    pairs = kept[0]._sets.heldout
    conversations = [
        [{"role": "user", "content": pair.prompt[0].content}, {"role": "assistant", "content": side.response.text}]
        for pair in pairs
        for side in pair.sides
    ]
    texts = [tokenizer.apply_chat_template(each, tokenize=False) for each in conversations]
    batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.no_grad():
        theirs = loaded(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]
        mine = kept[0]._learner.scores([side.tokens for pair in pairs for side in pair.sides])
    torch.testing.assert_close(theirs, mine, atol=1e-5, rtol=1e-5)
    assert float(mine.std()) > 0.01


def test_a_reward_model_that_ends_in_padding_is_read_where_transformers_reads_it(tiny_dir: Path) -> None:
    from trainer.inference.models import load_scalar
    from trainer.loops.learner.scalar import Scorer

    scorer = Scorer(load_scalar(tiny_dir), make_config("reward_model"))
    padding = scorer.plain.config.pad_token_id
    assert scorer.read((1, 2, padding, 3, padding, padding)) == (1, 2, padding, 3)


def test_sentence_embeddings_say_what_a_linear_reward_on_them_can(tiny_dir: Path) -> None:
    from trainer.loops.pairs.embedding_baseline import _fitted

    draw = torch.Generator().manual_seed(0)
    truth = torch.randn(8, generator=draw)
    x = torch.randn(400, 8, generator=draw)
    x = x * torch.sign(x @ truth)[:, None]
    weights = _fitted(x[:300])
    assert float((x[300:] @ weights > 0).float().mean()) > 0.95
