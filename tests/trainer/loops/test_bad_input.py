"""What a run is given and cannot use: it says so, counts what it leaves out, and loses nothing."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from trainer import checkpoints
from trainer.config import PolicyConfig
from trainer.rewards import Item, Part, Services, composition, guard, kinds

from ..running import run
from .conftest import events_of, metrics_of, small_config

BRIEF: dict[str, Any] = {"steps": 2, "evaluation": {"every": 0}, "scaffold": None}


def outcome(config: PolicyConfig, data: Path, model: Path, out: Path, resume: bool = False) -> tuple[str, str]:
    """The state in which a run ends, and the reason that its page shows."""
    run(config, data, model, out, resume)
    return [(e.data.state, e.data.reason) for e in events_of(out) if e.data.kind == "state"][-1]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def broken_model(tiny_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_dir, tmp_path / "model"))


def test_a_model_of_another_architecture(broken_model: Path, examples_file: Path, out: Path) -> None:
    file = broken_model / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_type": "gpt2"}))
    state, reason = outcome(small_config(**BRIEF), examples_file, broken_model, out)
    assert state == "failed" and "architecture 'gpt2' is not supported; supported: llama" in reason


def test_a_tokenizer_without_a_chat_template(broken_model: Path, examples_file: Path, out: Path) -> None:
    (broken_model / "chat_template.jinja").unlink()
    state, reason = outcome(small_config(**BRIEF), examples_file, broken_model, out)
    assert state == "failed" and "no chat template" in reason and "Use an instruct model" in reason


@pytest.mark.parametrize(
    "changed", [{"lora": None}, {"lora": {"rank": 4}}], ids=["all weights instead of adapters", "another rank"]
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_kept(
    changed: dict[str, Any], tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    assert outcome(small_config(**BRIEF), examples_file, tiny_dir, out)[0] == "finished"
    before = checkpoints.steps(out / "checkpoints")
    config = small_config(**BRIEF | {"steps": 3, "model": changed})
    state, reason = outcome(config, examples_file, tiny_dir, out, resume=True)
    assert state == "failed" and "another run's: model.lora" in reason
    assert checkpoints.steps(out / "checkpoints") == before


def test_a_checkpoint_of_a_model_of_another_shape_is_refused(
    broken_model: Path, tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    assert outcome(small_config(**BRIEF), examples_file, tiny_dir, out)[0] == "finished"
    wide = LlamaConfig.from_pretrained(broken_model, hidden_size=128)
    LlamaForCausalLM(wide).save_pretrained(broken_model)
    state, reason = outcome(small_config(**BRIEF | {"steps": 3}), examples_file, broken_model, out, resume=True)
    assert state == "failed" and "the model 'base' is another" in reason


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Whatever hangs in a test goes on once it is over."""
    event = threading.Event()
    yield event
    event.set()


Measured = Callable[[Item], Part]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Measured], None]:
    """Has the first response of every group scored by `measured`, the others as ever."""

    def install(measured: Measured) -> None:
        rubric = kinds.KINDS["rubric"]

        async def sometimes(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
            return [*await guard.each(items[:1], measured), *await rubric(part, items[1:], services)]

        monkeypatch.setitem(kinds.KINDS, "rubric", sometimes)

    return install


def test_a_reward_that_raises_excludes_its_response_and_the_run_goes_on(
    failing: Callable[[Measured], None], tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    def broken(item: Item) -> Part:
        raise RuntimeError("no answer from the judge")

    failing(broken)
    config = small_config(**BRIEF | {"evaluation": {"every": 0, "max_examples": 0}})
    assert outcome(config, examples_file, tiny_dir, out)[0] == "finished"
    check_exclusions(out, "rubric: RuntimeError: no answer from the judge")


def test_a_reward_that_hangs_is_given_up_and_excludes_its_response(
    failing: Callable[[Measured], None],
    release: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    tiny_dir: Path,
    examples_file: Path,
    out: Path,
) -> None:
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    failing(lambda item: Part(float(release.wait(600))))
    config = small_config(**BRIEF | {"evaluation": {"every": 0, "max_examples": 0}})
    assert outcome(config, examples_file, tiny_dir, out)[0] == "finished"
    check_exclusions(out, "rubric: took longer than 0.5 s")


def test_a_rubric_that_cannot_be_scored_in_time_is_not_tried_a_second_time(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch, tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    """Not even to be shown: outside of its guard it would hang the run."""
    monkeypatch.setattr(guard, "SECONDS", 0.05)
    monkeypatch.setattr(composition, "score_rubric", lambda *_: release.wait(600))
    monkeypatch.setattr("trainer.rewards.kinds.rubrics.verdicts", lambda *_: release.wait(600))
    config = small_config(**BRIEF | {"steps": 1, "evaluation": {"every": 0, "max_examples": 0}})
    assert outcome(config, examples_file, tiny_dir, out)[0] == "finished"
    values = metrics_of(out)
    assert values[1, "rollout/excluded"] == 8 and (1, "reward/mean") not in values


def check_exclusions(out: Path, reason: str) -> None:
    values = metrics_of(out)
    assert [values[step, "rollout/excluded"] for step in (1, 2)] == [2, 2]
    rows = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    left_out = [row for row in rows if row.reward is None]
    assert {row.excluded for row in left_out} == {reason} and len(left_out) == 4
    assert all(row.advantage is None and row.ratios == () for row in left_out)
