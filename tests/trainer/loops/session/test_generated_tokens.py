"""The tokens that a run generates are counted from step to step, with those of evaluations and of responses that a step leaves out."""

from pathlib import Path

from tests.trainer.loops.conftest import events_of, metrics_of, small_config, whole_and_resumed
from trainer.loops.session.generated_tokens import GeneratedTokens

KEY = "perf/generated_tokens"


class Source:
    generated = 0


def reported_tokens(run_dir: Path) -> dict[int, float]:
    """The tokens by step, as reported last."""
    found = {}
    for event in events_of(run_dir):
        if event.data.kind == "metrics" and KEY in event.data.values:
            found[event.step] = event.data.values[KEY]
    return found


def test_each_report_has_the_tokens_of_all_sources_since_the_report_before() -> None:
    counts, one, other = GeneratedTokens(), Source(), Source()
    assert counts.metrics() == {}, "nothing generates"
    counts.by(one)
    counts.by(other)
    one.generated, other.generated = 7, 5
    assert counts.metrics() == {KEY: 12.0}
    other.generated += 3
    assert counts.metrics() == {KEY: 3.0}
    assert counts.metrics() == {KEY: 0.0}


def test_a_run_counts_training_and_evaluation_and_goes_on_from_a_checkpoint_with_the_same_counts(
    examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    whole, broken = whole_and_resumed(small_config(), examples_file, tiny_dir, tmp_path, after=2)
    trained = {step: value for (step, key), value in metrics_of(whole).items() if key == "rollout/tokens"}
    counted = reported_tokens(whole)
    assert counted.keys() == trained.keys() == {1, 2, 3, 4}
    # held-out prompts are answered before the first step and after every second one
    assert [step for step in counted if counted[step] > trained[step] > 0] == [1, 2, 4]
    assert counted[3] == trained[3]
    assert reported_tokens(broken) == {step: counted[step] for step in (3, 4)}, (
        "what was told before is stored on the server"
    )
