"""The promises that recipes make, tested for each recipe: its example runs, reports the declared metrics, and survives a kill."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.killed_runs import run_until_killed
from tests.trainer.loops.conftest import events_of, metrics_of
from tests.trainer.running import run
from trainer import checkpoints
from trainer.config import RECIPES, RecipeConfig, resolve
from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric, VerifierSpec
from trainer.loops.registry import STAGES
from trainer.monitors import RunMonitor, Spool

STEPS = 3
CLOCK = ("perf/", "async/utilisation")


@pytest.fixture(params=RECIPES, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve prompts with everything that any recipe reads: a rubric of verifiers, two responses, a preference, a reference."""
    says_yes = Criterion(
        id="yes", text="Says yes.", points=1.0, verifier=VerifierSpec(name="must_contain", args={"texts": ["yes"]})
    )
    rows = []
    for number in range(12):
        question = Message(role="user", content=f"Is {number} a number?")
        rows.append(
            Example(
                key=f"row-{number}",
                prompt=(question,),
                split="train" if number < 8 else "heldout",
                domain="odd" if number % 2 else "even",
                rubric=Rubric(criteria=(says_yes,)),
                responses=(Response(id="a", text=f"yes, {number} is"), Response(id="b", text=f"no {number}")),
                preferences=(Preference(a="a", b="b", strength=-2, rater="r1"),),
                reference=f"yes, {number} is",
            )
        )
    path = tmp_path_factory.mktemp("data") / "examples.jsonl"
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def example(name: str, **changes: Any) -> RecipeConfig:
    raw = {**json.loads(json.dumps(dict(RECIPES[name].example))), "steps": STEPS, "checkpoint": {"every": 1, "keep": 9}}
    return resolve(name, {**raw, **changes})


@pytest.fixture(scope="module")
def whole(name: str, data: Path, tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of the recipe's example, for tests that read it."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert run(example(name), data, tiny_dir, out)
    return out


def emitted(out: Path) -> tuple[set[str], set[str]]:
    """Keys of values, and of histograms."""
    data = [event.data for event in events_of(out) if event.data.kind == "metrics"]
    return {key for item in data for key in item.values}, {key for item in data for key in item.histograms}


def test_every_recipe_has_a_stage_and_a_working_example(name: str) -> None:
    assert name in STAGES
    config = example(name)
    assert config.steps == STEPS
    assert RECIPES[name].outputs and RECIPES[name].needs
    assert RECIPES[name].metric(RECIPES[name].headline), "the headline is a declared metric"


def test_an_example_says_what_is_declared_and_all_of_it(name: str, whole: Path) -> None:
    recipe = RECIPES[name]
    values, histograms = emitted(whole)
    assert [key for key in sorted(values) if recipe.metric(key) is None] == []
    assert histograms <= {metric.key for metric in recipe.histograms}
    silent = [m.key for m in recipe.metrics if not m.optional and not any(m.holds(key) for key in values)]
    assert silent == []
    told = metrics_of(whole).items()
    assert [place for place, value in told if place[1] == "eval/excluded" and value] == [], "all of it can be measured"


def test_a_killed_example_resumes_to_the_same_numbers(
    name: str, whole: Path, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    run_until_killed("trainer.monitors:RunMonitor.metrics", example(name), data, tiny_dir, broken, step=2)
    assert checkpoints.steps(broken / "checkpoints") == [1]
    assert run(example(name), data, tiny_dir, broken, resume=True)

    def learned(out: Path) -> dict[tuple[int, str], float]:
        return {place: value for place, value in metrics_of(out).items() if not place[1].startswith(CLOCK)}

    assert learned(broken) == learned(whole)
    for owner, tensors in checkpoints.load(whole / "checkpoints" / f"step-{STEPS:06d}").tensors.items():
        again = checkpoints.load(broken / "checkpoints" / f"step-{STEPS:06d}").tensors[owner]
        assert all(tensors[key].equal(again[key]) for key in tensors), owner


def test_a_stopped_example_leaves_a_checkpoint(name: str, data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    class Stopping(RunMonitor):
        def metrics(self, step: int, *values: Any) -> None:
            super().metrics(step, *values)
            if step == 2:
                self.request_stop()

    out = tmp_path / "run"
    assert run(
        example(name, checkpoint={"every": 99, "keep": 1}),
        data,
        tiny_dir,
        out,
        monitor=Stopping(Spool(out / "events.jsonl")),
    )
    last = events_of(out)[-1].data
    assert last.kind == "state" and last.state == "stopped"
    assert checkpoints.steps(out / "checkpoints") in ([1], [2])


def test_what_an_example_puts_out_loads_with_stock_libraries(name: str, whole: Path, tiny_dir: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    models = [event.data for event in events_of(whole) if event.data.kind == "artifact" and event.data.role == "model"]
    assert {model.model.role for model in models} == {output.role for output in RECIPES[name].outputs}
    for model in models:
        folder = whole / model.path
        assert {file.path for file in model.model.files} == {
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        }
        scalar = model.model.head == "scalar"
        stock = AutoModelForSequenceClassification if scalar else AutoModelForCausalLM
        if model.model.format == "peft":
            options = {"num_labels": 1} if scalar else {}
            PeftModel.from_pretrained(stock.from_pretrained(str(tiny_dir), **options), str(folder))
        else:
            stock.from_pretrained(str(folder))
