"""The stage of recipe `distill`: a policy stage with its teachers loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.config.recipes.distill import DistillConfig
from trainer.loops.learner.teachers import Teachers
from trainer.loops.policy.parts import Parts
from trainer.loops.prompts.data import PromptSets, read_examples
from trainer.loops.recipes.distill import DistillStage, distilled_prompts, places_of
from trainer.loops.session.errors import RunFailed
from trainer.loops.session.stage import StageJob
from trainer.rollouts import RewardSetup

from .policy import collector_for, one_memory


def make(job: StageJob) -> DistillStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: DistillConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.build import build_sampler
    from trainer.inference.models import best_device, load_model, load_tokenizer
    from trainer.loops.learner.learner import Learner

    base = job.models["base"]
    tokenizer = load_tokenizer(base)
    prompts = distilled_prompts(examples, tokenizer, config)
    for line in prompts.left_out:
        job.monitor.log(line, level="warning")
    if not prompts.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    folders = teacher_folders(config, job.models)
    for folder in dict.fromkeys(folders):
        _same_tokens(folder, tokenizer, load_tokenizer)
        if folder == base:
            job.monitor.log(
                "a teacher is the very model that the run begins with: there is nothing to learn from it",
                level="warning",
            )
    teachers = _teachers(folders, places_of(prompts, config), config)
    learner = Learner(load_model(base, config.model.dtype).to(best_device()), config)
    sampler: Any = build_sampler(config, base, tokenizer)
    job.generated.by(sampler)
    if one_memory(config, learner):
        sampler.follow(learner.plain)
    _tell_who_teaches(job, config, prompts, learner.size)
    rewards = RewardSetup(config, job.access)
    parts = Parts(config, prompts, tokenizer, sampler, learner, job.run_dir, base, teachers)
    return DistillStage(parts, collector_for(job, rewards), rewards)


def teacher_folders(config: DistillConfig, models: Mapping[str, Path]) -> list[Path]:
    """The folder of each teacher, in order.

    Several teachers are given by their paths, a single one by its role. From a shell without either, a teacher with the name of the
    trained model is that model.
    """
    found = []
    for place, teacher in enumerate(config.teachers):
        same = models["base"] if teacher.model == config.model.name else None
        folder = models.get(f"teachers.{place}.model", models.get("teacher", same))
        if folder is None:
            raise RunFailed(
                f"teachers.{place}.model: the directory of {teacher.model!r} is missing (--slot teachers.{place}.model=DIR on "
                "the command line)"
            )
        found.append(folder)
    return found


def _teachers(folders: list[Path], places: Mapping[str, int], config: DistillConfig) -> Teachers:
    """The teachers; a folder is loaded once, even if it teaches several stages."""
    from trainer.inference.models import best_device, load_model
    from trainer.loops.learner.learner import Teacher

    distinct = list(dict.fromkeys(folders))
    voices = [Teacher(load_model(folder, config.model.dtype).to(best_device())) for folder in distinct]
    return Teachers(voices, {key: distinct.index(folders[place]) for key, place in places.items()})


def _same_tokens(folder: Path, tokenizer: Any, load_tokenizer: Any) -> None:
    if load_tokenizer(folder).get_vocab() != tokenizer.get_vocab():
        raise RunFailed(
            f"the teacher in {folder} has another tokenizer than the model: its log-probabilities are of other tokens. Choose a "
            "teacher of the same family."
        )


def _tell_who_teaches(job: StageJob, config: DistillConfig, prompts: PromptSets, size: int) -> None:
    counts: dict[str, int] = {}
    for prompt in prompts.train:
        name, place = config.stage_of(prompt.example)
        told = f"{name}: {config.teachers[place or 0].model}"
        counts[told] = counts.get(told, 0) + 1
    job.monitor.log(
        f"{len(prompts.train):,} training and {len(prompts.heldout):,} held-out prompts; {size:,} trained parameters; teachers by "
        f"stage: {'; '.join(f'{told} ({count:,})' for told, count in sorted(counts.items())[:20])}"
    )
