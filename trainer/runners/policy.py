"""The stage of recipe `policy`, with the collector and the learner that its config asks for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.config import OnPolicyConfig
from trainer.contracts import Example
from trainer.loops.policy.collecting import Collector, MakeCollector, SyncCollector
from trainer.loops.policy.offline import OfflineCollector
from trainer.loops.policy.parts import Parts
from trainer.loops.prompts.data import PromptSets, prepare_prompts, read_examples
from trainer.loops.prompts.planner import Planner
from trainer.loops.recipes.policy import PolicyStage
from trainer.loops.session.errors import AttemptAbandoned, RunFailed, StopRequested
from trainer.loops.session.stage import StageJob
from trainer.monitors import RunMonitor
from trainer.rollouts import RewardScorer, RewardSetup, reward_folders
from trainer.tasks import TrainingTask

Prepare = Callable[[Sequence[Example], Any, Any], PromptSets]
"""(examples, tokenizer, config) -> the prompts of a run."""

if TYPE_CHECKING:
    from .placement import Places


def make(job: StageJob) -> PolicyStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    return on_policy(job, prepare_prompts)


def on_policy(job: StageJob, prepare: Prepare, task: TrainingTask | None = None) -> PolicyStage:
    """The stage of a policy with the prompts that `prepare` gives, those of `task`."""
    config: OnPolicyConfig = job.config
    rows = read_examples(job.examples)  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.models import load_tokenizer

    tokenizer = load_tokenizer(job.models["base"])
    prompts = prepare(rows, tokenizer, config)
    for line in prompts.left_out:
        job.monitor.log(line, level="warning")
    if not prompts.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    teacher_dir = _teacher_dir(job, tokenizer)
    places = _places(job)
    try:
        return _stage(job, prompts, tokenizer, teacher_dir, places, task)
    except BaseException:
        if places:
            places.close()
        raise


def _stage(
    job: StageJob,
    prompts: PromptSets,
    tokenizer: Any,
    teacher_dir: Path | None,
    places: "Places | None",
    task: TrainingTask | None,
) -> PolicyStage:
    from trainer.inference.build import build_sampler

    config, model_dir = job.config, job.models["base"]
    learner, updater, teacher = _learner(config, model_dir, teacher_dir, places)
    sampler: Any = build_sampler(config, model_dir, tokenizer)
    job.generated.by(sampler)
    if one_memory(config, learner):
        sampler.follow(learner.plain)
    rewards = RewardSetup(config, job.access, reward_folders(config.composition.parts, job.models))
    parts = Parts(config, prompts, tokenizer, sampler, learner, job.run_dir, model_dir, teacher, updater, task)
    job.monitor.log(
        f"{len(prompts.train)} training and {len(prompts.heldout)} held-out prompts; {learner.size:,} trained parameters"
    )
    return PolicyStage(parts, collector_for(job, rewards, places), rewards)


def _places(job: StageJob) -> "Places | None":
    """The places of the processes that train together and of the workers, reserved at once before anything is loaded. None if only
    workers need places: they reserve theirs when they start.
    """
    if job.config.optim.processes == 1:
        return None
    from .placement import reserve
    from .ray_fleet import connect

    connect()
    return reserve(job.config, waiting_reporter(job.monitor))


def waiting_reporter(monitor: RunMonitor) -> Callable[[str], None]:
    """A function that reports what the run waits for; stopping the run ends the waiting."""
    paused = False

    def look(reason: str) -> None:
        nonlocal paused
        if reason and not paused:
            monitor.state("paused", reason)
        if paused and not reason:
            monitor.state("running")
        paused = bool(reason)
        if monitor.command == "abandon":
            raise AttemptAbandoned("the server has given this run to another attempt")
        if monitor.command == "stop":
            raise StopRequested

    return look


def collector_for(job: StageJob, rewards: RewardSetup, places: "Places | None" = None) -> MakeCollector:
    """The collector for `runner.kind`: one that samples while the learner waits, one of rounds with stored responses, or workers."""
    if job.config.runner.kind == "sync":
        return SyncCollector
    if job.config.runner.kind == "offline":
        return OfflineCollector
    from .collecting import AsyncCollector
    from .ray_fleet import RayFleet

    def make(parts: Parts, planner: Planner, scorer: RewardScorer) -> Collector:
        fleet = RayFleet(job.config, job.models["base"], rewards, places=places, look=waiting_reporter(job.monitor))
        collector = AsyncCollector(parts, planner, scorer, fleet, job.monitor.log)
        job.generated.by(collector)
        return collector

    return make


def one_memory(config: OnPolicyConfig, learner: Any) -> bool:
    """Whether the sampler uses the learner's memory. Some models keep parameters in float32 for any dtype: a push would give these
    another precision, so nothing is shared.
    """
    dtype = f"torch.{config.model.dtype}"
    return config.one_memory and all(str(each.dtype) == dtype for each in learner.plain.parameters())


def _learner(
    config: OnPolicyConfig, model_dir: Path, teacher_dir: Path | None, places: "Places | None"
) -> tuple[Any, Any, Any]:
    """The learner, the updater if another process updates, and the teacher if it is in this process."""
    if config.optim.processes > 1:
        from .ray_learner import ShardedLearner, ShardedUpdater

        assert places is not None  # noqa: S101 - the stage makes places where there are several processes
        sharded = ShardedLearner(config, model_dir, teacher_dir, places)
        return sharded, ShardedUpdater(sharded, config), None
    from trainer.inference.models import best_device, load_model
    from trainer.loops.learner.learner import Learner, Teacher

    teacher = Teacher(load_model(teacher_dir, config.model.dtype).to(best_device())) if teacher_dir else None
    return Learner(load_model(model_dir, config.model.dtype).to(best_device()), config), None, teacher


def _teacher_dir(job: StageJob, tokenizer: Any) -> Path | None:
    """The teacher's folder for objective `distill`. Raises RunFailed if there is no teacher, or if its tokens differ."""
    if job.config.objective.name != "distill":
        return None
    folder = job.models.get("teacher")
    if folder is None:
        raise RunFailed("objective 'distill' needs the directory of a teacher (--teacher on the command line)")
    from trainer.inference.models import load_tokenizer

    if load_tokenizer(folder).get_vocab() != tokenizer.get_vocab():
        raise RunFailed(
            f"the teacher in {folder} has another tokenizer than the model: its log-probabilities are of other "
            "tokens. Choose a teacher of the same family."
        )
    return folder
