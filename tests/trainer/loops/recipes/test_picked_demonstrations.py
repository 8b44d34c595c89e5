"""A run that learns a part of its demonstrations: the chosen ones are known by hand, and are the same after a restart."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainer.claims import pool
from trainer.config import ConfigInvalid, resolve
from trainer.inference.models import load_model, load_tokenizer
from trainer.loops.session.errors import RunFailed
from trainer.loops.supervised import data_selection
from trainer.loops.supervised.demonstrations import Demonstration, prepare_demonstrations
from trainer.selection import k_center

from ...running import run
from ..conftest import events_of, metrics_of
from ..texts import demonstrations, make_config, write_examples


@pytest.fixture(scope="module")
def model(tiny_dir: Path) -> Any:
    return load_model(tiny_dir)


@pytest.fixture(scope="module")
def items(tiny_dir: Path) -> list[Demonstration]:
    tokenizer = load_tokenizer(tiny_dir)
    data = make_config("sft").data.model_copy(update={"source": "references"})
    rows = pool.demonstrations(3)[:60]
    return prepare_demonstrations(rows, tokenizer, [tokenizer.eos_token_id], data, 0).train


def places(items: list[Demonstration], model: Any, **data: Any) -> list[int] | None:
    return data_selection.selected(items, model, make_config("sft", seed=3, data=data))


def test_hidden_means_and_perplexities_are_those_of_each_conversation_alone(
    items: list[Demonstration], model: Any
) -> None:
    vectors, surprise = data_selection._measured(items, model, most_tokens=64)
    whole, _ = data_selection._measured(items, model, most_tokens=100_000)
    assert np.abs(vectors - whole).max() < 1e-5, "whatever stands in a batch beside it"
    for place in (0, 17, 59):
        tokens, learnt = items[place].turns
        with torch.inference_mode():
            out = model(input_ids=torch.tensor([list(tokens)]), output_hidden_states=True)
        assert np.allclose(vectors[place], out.hidden_states[-1][0].mean(0).numpy(), atol=1e-5)
        logp = out.logits[0].log_softmax(-1)
        by_hand = -math.fsum(float(logp[at - 1, tokens[at]]) for at in learnt) / len(learnt)
        assert surprise[place] == pytest.approx(by_hand, abs=1e-4)


def test_a_share_is_picked_in_three_ways_and_repeatably(items: list[Demonstration], model: Any) -> None:
    assert places(items, model) is None
    found = {name: places(items, model, select=name) for name in ("random", "cover", "distance")}
    assert all(each == sorted(set(each or [])) and len(each) == 6 for each in found.values())
    assert len({tuple(each or []) for each in found.values()}) == 3
    assert found == {name: places(items, model, select=name) for name in found}
    vectors, surprise = data_selection._measured(items, model, 1024)
    assert found["cover"] == sorted(k_center(vectors, surprise, 6))
    assert places(items, model, select="random", share=0.001) is not None, "one at least"


def test_too_many_to_compare_are_refused(
    items: list[Demonstration], model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_selection, "MOST_COMPARED", 100)
    with pytest.raises(RunFailed, match=r"data.share: 6 picks among 60 conversations"):
        places(items, model, select="cover")


def test_the_share_is_no_share_is_refused() -> None:
    with pytest.raises(ConfigInvalid):
        resolve("sft", {"data": {"select": "random", "share": 1.0}})


def test_a_run_learns_what_was_picked_says_so_and_goes_on_with_the_same_after_a_restart(
    tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_examples(demonstrations(20, 2), tmp_path / "data.jsonl")
    asked = {"source": "references", "select": "cover", "share": 0.2}
    config = make_config("sft", steps=4, batch_size=2, data=asked, checkpoint={"every": 2})
    assert run(config, data, tiny_dir, tmp_path / "whole")
    logged = [e.data.message for e in events_of(tmp_path / "whole") if e.data.kind == "log"]
    assert any("20 training (4 of them are learnt, data.select: cover)" in line for line in logged), logged
    half = make_config("sft", steps=2, batch_size=2, data=asked, checkpoint={"every": 2})
    assert run(half, data, tiny_dir, tmp_path / "parts")
    with monkeypatch.context() as elsewhere:  # a machine with other rounding picks others
        elsewhere.setattr("trainer.loops.recipes.sft.selected", lambda items, model, config: [0, 1, 2])
        assert run(config, data, tiny_dir, tmp_path / "parts", resume=True)
    ends = [metrics_of(tmp_path / name)[4, "eval/loss"] for name in ("whole", "parts")]
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)
