"""The constructed tasks by name: their examples, and the model that was taught for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.contracts import Example
from trainer.metrics.claims import Setting
from trainer.metrics.claims.plan import Task

from . import answers, faults, pool, reasoned, rubric_pairs, rubrics, toy, turns
from .teaching import Progress


@dataclass(frozen=True)
class Constructed:
    examples: Callable[[Setting], Sequence[Example]]
    make_model: Callable[[Path, Progress], bool]
    by_seed: Callable[[int], Sequence[Example]] | None = None
    """The examples of each seed, if the seeds have their own."""
    given: Path | None = Path("demo/prompts.jsonl")
    """The data of the size `demo` unless other data is named; None: the data must be named."""
    made_ready: Callable[[Path, Path, Path, Callable[[str], None]], tuple[Path, Path]] | None = None
    """Makes data and model of the size `demo` if they are not used as given. Arguments: both as given, the folder of the claim, progress.
    """


TASKS: Mapping[Task, Constructed] = {
    "syllables": Constructed(lambda setting: toy.examples(setting.wanted), toy.make_model),
    "graded": Constructed(lambda setting: toy.graded(), toy.make_model),
    "near": Constructed(lambda setting: toy.near(), toy.make_model),
    "halves": Constructed(lambda setting: toy.halves(), toy.make_model),
    "pool": Constructed(lambda setting: pool.demonstrations(), toy.make_model, by_seed=pool.demonstrations),
    "wordy": Constructed(lambda setting: toy.graded(), toy.make_wordy),
    "tailed": Constructed(lambda setting: toy.tailed(), toy.make_tailed),
    "faults": Constructed(
        lambda setting: faults.examples(), faults.make_model, given=None, made_ready=reasoned.made_ready
    ),
    "answers": Constructed(lambda setting: answers.examples(), answers.make_model),
    "rubrics": Constructed(lambda setting: rubrics.examples(), rubrics.make_model),
    "rubric_pairs": Constructed(
        lambda setting: rubric_pairs.examples(rubric_pairs.GIVEN),
        toy.make_model,
        given=rubric_pairs.GIVEN,
        made_ready=rubric_pairs.made_ready,
    ),
    "turns": Constructed(lambda setting: turns.examples(), turns.make_model),
}
