"""Input that a run cannot use, case by case. The run pauses or fails, names the part, the step and the remedy, and loses nothing.
`tests/webapp/experiments/launch/test_bad_input.py` tests the problems that are known before the queue.

A PEFT adapter of another base: `tests/trainer/inference/test_adapters.py`. A checkpoint of another config, of other data:
`test_session.py`. A judge that is away: `test_judged_runs.py`.
"""

import errno
import json
import shutil
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from tests.timeouts import SECONDS
from tests.webapp.experiments.rewards.service import RewardService, reward_service
from trainer import checkpoints
from trainer.config import PolicyConfig
from trainer.judges.chat import Target
from trainer.rewards import Item, Part, Services, composition, guard, kinds
from trainer.rewards.access import Access
from trainer.rollouts import scoring

from ...running import run
from ..conftest import events_of, metrics_of, small_config

BRIEF: dict[str, Any] = {"steps": 2, "evaluation": {"every": 0}, "scaffold": None}


def outcome(
    config: PolicyConfig, data: Path, model: Path, out: Path, resume: bool = False, **more: Any
) -> tuple[str, str]:
    """The state in which a run ends, and the reason on its page."""
    run(config, data, model, out, resume, **more)
    return states(out)[-1]


def states(out: Path) -> list[tuple[str, str]]:
    return [(e.data.state, e.data.reason) for e in events_of(out) if e.data.kind == "state"]


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
    assert state == "failed" and "the weights do not fit config.json" in reason


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
    assert state == "failed" and "the model 'base' differs" in reason


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """A function that hangs in a test continues after the test."""
    event = threading.Event()
    yield event
    event.set()


Measured = Callable[[Item], Part]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Measured], None]:
    """`measured` scores the first response of every group. The others are scored as usual."""

    def install(measured: Measured) -> None:
        rubric = kinds.KINDS["rubric"]

        async def sometimes(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
            return [*await guard.measure_each(items[:1], measured), *await rubric(part, items[1:], services)]

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
    """The verdicts are not computed again to be shown either. That would happen outside the guard, and hang the run."""
    monkeypatch.setattr(guard, "SECONDS", 0.05)
    monkeypatch.setattr(composition, "score_rubric", lambda *_: release.wait(600))
    monkeypatch.setattr("trainer.rewards.kinds.rubrics.verdicts", lambda *_: release.wait(600))
    config = small_config(**BRIEF | {"steps": 1, "evaluation": {"every": 0, "max_examples": 0}})
    state, reason = outcome(config, examples_file, tiny_dir, out)
    assert state == "failed" and "No response of step 1 has a reward" in reason
    assert "rubric: took longer than 0.05 s" in reason and "fork the run" in reason
    values = metrics_of(out)
    assert values[1, "rollout/excluded"] == 8 and (1, "reward/mean") not in values


def check_exclusions(out: Path, reason: str) -> None:
    values = metrics_of(out)
    assert [values[step, "rollout/excluded"] for step in (1, 2)] == [2, 2]
    rows = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    left_out = [row for row in rows if row.reward is None]
    assert {row.excluded for row in left_out} == {reason} and len(left_out) == 4
    assert all(row.advantage is None and row.ratios == () for row in left_out)


# A user's own reward that answers text or NaN, too late or not at all

OWN = """
import time
from pathlib import Path

def own(responses):
    mood, _, since = Path(__file__).with_name("mood").read_text().partition(" ")
    lengths = [float(len(each["response"])) for each in responses]
    if int(responses[0]["place"].split("/")[1]) < int(since or 1):
        return lengths
    if mood == "late":
        time.sleep(60)
    if mood == "raises":
        raise KeyError("tone")
    return {"fine": lengths, "text": "very good", "nan": [float("nan")] * len(responses)}[mood]
"""
UNEVALUATED = {**BRIEF, "evaluation": {"every": 0, "max_examples": 0}}
BY_FUNCTION = {"kind": "python", "entry": "own", "seconds": SECONDS}


@pytest.fixture
def mood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that says how an installed reward function answers. `text` always answers text, `text 2` from step 2 on."""
    site = tmp_path / "site"
    info = site / "own-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "own.py").write_text(textwrap.dedent(OWN))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[touchstone.rewards]\nown = own:own\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("TOUCHSTONE_REWARD_FUNCTIONS", "own")
    return site / "mood"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("text", "python: it answered a str, not a list with one entry for each of 4 responses"),
        ("nan", "python: it answered nan, which is not a finite number"),
        ("late", "python: took longer than 0.5 s"),
        ("raises", "python: KeyError: 'tone'"),
    ],
)
def test_a_function_that_gives_no_number_ends_the_run_which_goes_on_once_it_is_mended(
    answer: str, why: str, mood: Path, tiny_dir: Path, examples_file: Path, tmp_path: Path, out: Path
) -> None:
    within = {"seconds": 0.5} if answer == "late" else {}
    config = small_config(**UNEVALUATED, rewards=[BY_FUNCTION | within])
    mood.write_text(answer)
    state, reason = outcome(config, examples_file, tiny_dir, out)
    assert state == "failed" and reason == (
        f"No response of step 1 has a reward, so there is nothing to learn. {why}. Remedies: mend the function 'own' and "
        "resume the run, which continues from its last step."
    )
    assert not (out / "outputs").exists(), "a model that has learned nothing is no output"
    if answer == "text":
        shown = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
        assert len(shown) == 8 and {row.excluded for row in shown} == {why}, "the viewer shows what happened"
        mood.write_text("fine")
        assert outcome(config, examples_file, tiny_dir, out, resume=True)[0] == "finished"
        assert outcome(config, examples_file, tiny_dir, tmp_path / "undisturbed")[0] == "finished"
        assert metrics_of(out) == metrics_of(tmp_path / "undisturbed")


def test_a_function_that_breaks_later_may_fail_for_two_steps_and_not_for_three(
    mood: Path, tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    config = small_config(**UNEVALUATED | {"steps": 6}, rewards=[BY_FUNCTION])
    mood.write_text("raises 2")
    state, reason = outcome(config, examples_file, tiny_dir, out)
    assert state == "failed" and "No response of 3 steps in a row up to step 4 has a reward" in reason
    assert checkpoints.steps(out / "checkpoints")[-1] == 3
    mood.write_text("fine")
    assert outcome(config, examples_file, tiny_dir, out, resume=True)[0] == "finished"
    assert {step for step, key in metrics_of(out) if key == "policy/loss"} >= {1, 4, 5, 6}


@pytest.fixture
def service() -> Iterator[RewardService]:
    with reward_service() as found:
        yield found


def by_service(service: RewardService, timeout_s: float = SECONDS) -> dict[str, Any]:
    return {"access": Access(endpoints={"ours": Target(service.url, "", None, retries=0, timeout_s=timeout_s)})}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"very good", "http: answered something that is not JSON: b'very good'"),
        (b'{"values": [NaN, NaN, NaN, NaN]}', "http: it answered nan, which is not a finite number"),
    ],
    ids=["text", "nan"],
)
def test_a_service_that_gives_no_number_ends_the_run_which_goes_on_once_it_is_mended(
    body: bytes, why: str, service: RewardService, tiny_dir: Path, examples_file: Path, tmp_path: Path, out: Path
) -> None:
    config = small_config(**UNEVALUATED, rewards=[{"kind": "http", "endpoint": "ours"}])
    service.body = body
    state, reason = outcome(config, examples_file, tiny_dir, out, **by_service(service))
    assert state == "failed" and f"step 1 has a reward, so there is nothing to learn. {why}. Remedies" in reason
    assert "mend the service 'ours' and resume the run" in reason
    service.body = None
    assert outcome(config, examples_file, tiny_dir, out, resume=True, **by_service(service))[0] == "finished"
    assert outcome(config, examples_file, tiny_dir, tmp_path / "undisturbed", **by_service(service))[0] == "finished"
    assert metrics_of(out) == metrics_of(tmp_path / "undisturbed")


def test_a_service_that_never_answers_pauses_the_run_which_goes_on_when_it_does(
    service: RewardService, tiny_dir: Path, examples_file: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FIRST_WAIT_S", 0.05)
    service.gate.clear()

    def open_once_it_waits() -> None:
        while not (out / "events.jsonl").exists() or "paused" not in [state for state, _ in states(out)]:
            time.sleep(0.02)
        service.gate.set()

    threading.Thread(target=open_once_it_waits, daemon=True).start()
    config = small_config(**UNEVALUATED, rewards=[{"kind": "http", "endpoint": "ours"}])
    assert outcome(config, examples_file, tiny_dir, out, **by_service(service, timeout_s=0.5))[0] == "finished"
    assert states(out)[1] == ("paused", "Step 1 waits. http: no complete answer within 0.5 s")
    assert metrics_of(out)[1, "rollout/excluded"] == 0


def test_an_expression_that_divides_by_zero_everywhere_ends_the_run(
    tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    form = {"kind": "format", "name": "form", "form": "pattern", "pattern": "never so"}
    config = small_config(**UNEVALUATED, rewards=[{"kind": "rubric"}, form], reward_expression="rubric / form")
    state, reason = outcome(config, examples_file, tiny_dir, out)
    assert state == "failed" and "The expression: division by zero: form is 0." in reason
    assert reason.endswith("Remedies: fork the run with another expression.")


# A reward model with another tokenizer


def test_a_reward_model_reads_with_a_tokenizer_of_its_own(
    tiny_dir: Path, examples_file: Path, tmp_path: Path, out: Path
) -> None:
    """The reward model cannot use the policy's tokens, so it gets the text."""
    from trainer.inference.models import load_scalar, load_tokenizer

    folder = tmp_path / "scorer"
    load_scalar(tiny_dir, seed=3).save_pretrained(folder)
    tokenizer = load_tokenizer(tiny_dir)
    tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    config = small_config(**UNEVALUATED, rewards=[{"kind": "reward_model", "model": "scorer"}])
    assert outcome(config, examples_file, tiny_dir, out, **{"rewards.0.model": folder})[0] == "finished"  # type: ignore[arg-type]
    rows = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    assert rows and all(row.reward is not None for row in rows)


def test_a_tokenizer_of_another_model_is_refused_before_anything_is_scored(
    broken_model: Path, tiny_dir: Path, examples_file: Path, out: Path
) -> None:
    from trainer.inference.models import load_scalar

    load_scalar(tiny_dir).save_pretrained(broken_model)
    file = broken_model / "tokenizer.json"
    told = json.loads(file.read_text())
    vocabulary = told["model"]["vocab"]
    vocabulary |= {f"word{i}": len(vocabulary) + len(told["added_tokens"]) + i for i in range(99)}
    file.write_text(json.dumps(told))
    config = small_config(**UNEVALUATED, rewards=[{"kind": "reward_model", "model": "scorer"}])
    state, reason = outcome(config, examples_file, tiny_dir, out, **{"rewards.0.model": broken_model})  # type: ignore[arg-type]
    assert state == "failed" and "the tokenizer is another model's" in reason
    assert "Copy the tokenizer that the model was trained with" in reason


# A disk that becomes full during an export


@pytest.mark.parametrize("said", ["by the system", "by safetensors"])
def test_a_disk_that_fills_during_export_pauses_the_run_which_ends_when_there_is_room(
    said: str, tiny_dir: Path, examples_file: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import SafetensorError

    from trainer.loops.learner import export
    from trainer.monitors import RunMonitor, Spool

    write, tries = save_file, 0

    def full(tensors: Any, path: Path, **options: Any) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            path.write_bytes(b"half")
            if said == "by safetensors":  # the message of a file system of 64 kB
                raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(tensors, path, **options)

    monkeypatch.setattr(export, "save_file", full)
    monitor = RunMonitor(Spool(out / "events.jsonl"), retry_s=0.01)
    assert outcome(small_config(**UNEVALUATED), examples_file, tiny_dir, out, monitor=monitor)[0] == "finished"
    (_, reason), *_ = [told for told in states(out) if told[0] == "paused"]
    assert (
        reason.startswith("Step 2 waits. No space left on the disk of") and "the run then continues by itself" in reason
    )
    assert [state for state, _ in states(out)] == ["running", "paused", "running", "finished"]
    assert sorted(path.name for path in (out / "outputs").iterdir()) == ["policy"]
