"""Recipe `chain`: stages in a row, each with its own steps, over one model, one sampler and one scorer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from trainer.config.recipes.chain import ChainConfig
from trainer.contracts.plurals import with_noun
from trainer.rewards.rejection import problems as filter_problems
from trainer.rollouts import RewardScorer, RewardSetup, reward_folders
from trainer.seeding import derive_seed

from ..learner.earlier_teacher import Earlier
from ..learner.export import write_model
from ..learner.learner import Learner
from ..learner.teachers import Teachers
from ..learner.weight_push import WeightPusher
from ..policy.evaluation import evaluate
from ..policy.missing_rewards import MissingRewards
from ..policy.parts import Parts
from ..policy.reports import rollout_records
from ..policy.scoring_watch import ScoringWatch
from ..prompts.data import Prompt, PromptSets, prepare_prompts, read_examples
from ..session.errors import RunFailed, StopRequested, Unrewarded
from ..session.stage import ModelOutput, StageJob, State, Tell
from .distill import DistillStage
from .imitation import ImitationStage
from .policy import PolicyStage

ENDED = "stage-"
"""The prefix, in a checkpoint and in the name of an output, of the number, from 1, of a stage that has ended."""


class ChainPart(Protocol):
    """The work of a stage of the chain in its steps."""

    def open(self, step: int) -> None: ...

    def step(self, number: int, tell: Tell) -> None: ...

    def state(self) -> State: ...

    def restore(self, step: int, state: State) -> None: ...


@dataclass(frozen=True)
class Current:
    """The stage under way, with its place from 0."""

    number: int
    part: ChainPart


class OneScorer:
    """Gives all stages one scorer, so that budgets of judges are those of the run."""

    def __init__(self, scorer: RewardScorer) -> None:
        self._scorer = scorer

    def open(self, journal: Path | None = None) -> RewardScorer:
        return self._scorer


class ChainStage:
    """Steps belong to stages. Seed, stage and step decide every random choice."""

    def __init__(self, job: StageJob, parts: Parts, scorer: RewardScorer) -> None:
        self._job, self._parts, self._scorer = job, parts, scorer
        self._config: ChainConfig = job.config
        self._learner: Learner = parts.learner
        self._pusher = WeightPusher(parts.config, parts.learner, parts.sampler)
        self._missing = MissingRewards(parts.config.composition.parts)
        starts_anew = any(stage.begin == "start" for stage in self._config.stages)
        self._start = self._kept() if starts_anew else {}
        self._ended: dict[int, dict[str, Tensor]] = {}
        """The trained weights at the end of each stage, by its place from 0."""
        self._current: Current | None = None
        self.evaluates = bool(parts.prompts.heldout)

    def open(self, step: int) -> None:
        if self._current is not None:
            self._current.part.open(step)

    def step(self, number: int, tell: Tell) -> None:
        place, first = self._config.turn(number)
        before, ended = self._current, dict(self._ended)
        if before is None or before.number != place:
            self._current = self._begun(place, number, tell)
        assert self._current is not None  # noqa: S101 - for the types: it has begun
        try:
            if number == first:
                tell.metrics({"phase/number": float(place + 1)})
            self._current.part.step(number, tell)
        except (StopRequested, Unrewarded):
            if self._current is not before:
                self._take_back(before, ended)
            raise

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        """An evaluation on all held-out prompts, in every stage, so that it shows what a stage has made the policy forget."""
        parts = self._parts
        self._pusher.push(number)
        watch = ScoringWatch(tell, len(parts.prompts.heldout) * parts.config.evaluation.samples)
        found = evaluate(parts, self._scorer, f"eval/{number}", tell.watch("evaluating", "evaluation"), watch)
        tell.rollouts(partial(rollout_records, found.trajectories, parts.token_texts, "eval"))
        if self._current is None or not isinstance(distils := self._current.part, DistillStage):
            return found.values
        parts.sampler.rest()
        taught = [t for t in found.trajectories if t.plan.example_key in distils.parts.tasks]
        return found.values | distils.gap_metrics(taught, distils.gaps(taught, tell))

    def state(self) -> State:
        values: dict[str, Any] = {
            "rewards": self._scorer.state_dict(),
            "missing": self._missing.state_dict(),
            "ended": sorted(self._ended),
        }
        ended = {f"{ENDED}{place + 1}": policy for place, policy in self._ended.items()}
        tensors: dict[str, Mapping[str, Tensor]] = {**self._learner.state_tensors(), **ended}
        if self._current is not None:
            inner = self._current.part.state()
            values["stage"] = {"number": self._current.number, "state": inner.values}
            tensors = {**inner.tensors, **tensors}
        return State(values, tensors)

    def restore(self, step: int, state: State) -> None:
        values, tensors = state.values, state.tensors
        self._scorer.load_state_dict(values["rewards"])
        self._missing.load_state_dict(values["missing"])
        self._learner.load_state_tensors(tensors)
        self._ended = {place: dict(tensors[f"{ENDED}{place + 1}"]) for place in values["ended"]}
        if saved := values.get("stage"):
            part = self._made(saved["number"])
            part.restore(step, State(saved["state"], tensors))
            self._current = Current(saved["number"], part)

    def outputs(self) -> Iterator[ModelOutput]:
        if self._config.leaves == "each":
            for place in sorted(self._ended):
                name = f"{ENDED}{place + 1}"
                yield ModelOutput("policy", name, partial(self._write, self._ended[place]))
        write = partial(write_model, config=self._config, base=self._parts.base, trained=self._learner)
        yield ModelOutput("policy", "policy", write)

    def close(self) -> None:
        self._closed(self._current)
        self._scorer.close()
        self._parts.sampler.close()
        self._learner.close()

    def _take_back(self, before: Current | None, ended: dict[int, dict[str, Tensor]]) -> None:
        """Undo the beginning of a stage whose first step did not happen. Its moments need no undoing, because the stage that begins drops
        them.
        """
        if before is not None:
            self._learner.fill(self._ended[before.number])
        self._closed(self._current)
        self._current, self._ended = before, ended

    def _closed(self, current: Current | None) -> None:
        """Close the scorer of a stage that distils: it is the stage's own."""
        if current is not None and isinstance(current.part, DistillStage):
            current.part.scorer.close()

    def _write(self, policy: Mapping[str, Tensor], folder: Path) -> None:
        with self._learner.holding(policy):
            write_model(folder, self._config, self._parts.base, self._learner)

    def _begun(self, place: int, step: int, tell: Tell) -> Current:
        """The next stage. A stop in between leaves everything as it was."""
        ended = dict(self._ended)
        if self._current is not None:
            ended[self._current.number] = self._kept()
        before, self._ended = self._ended, ended
        stage = self._config.stages[place]
        try:
            part = self._made(place)
            if isinstance(part, ImitationStage):
                self._pusher.push(step - 1)
                part.choose(tell)
        except BaseException:
            self._ended = before
            raise
        self._closed(self._current)
        if stage.begin == "start":
            self._learner.fill(self._start)
        self._learner.forget_moments()
        part.open(step - 1)
        tell.log(
            f"stage {place + 1} of {len(self._config.stages)} begins: {stage.what}, {with_noun(stage.steps, 'steps')}"
        )
        return Current(place, part)

    def _made(self, place: int) -> ChainPart:
        """The stage at a place, before its first step. Raises RunFailed if it has no prompt."""
        stage, seed = self._config.stages[place], derive_seed(self._config.seed, "stage", place)
        if stage.do == "distil":
            return self._distilling(place, seed)
        config = self._parts.config.model_copy(update={"seed": seed})
        parts = replace(self._parts, config=config, prompts=self._on(stage.domain, place))
        if stage.do == "imitate":
            return ImitationStage(self._job, parts, self._scorer, self._config.imitation)
        return PolicyStage(parts, rewards=OneScorer(self._scorer), missing=self._missing)

    def _distilling(self, place: int, seed: int) -> DistillStage:
        config = self._config.distilling(place).model_copy(update={"seed": seed})
        stages = list(self._config.teachers(place).values())
        whole, domain = self._parts.prompts, self._config.stages[place].domain
        taught = PromptSets(
            [each for each in self._on(domain, place).train if config.stage_of(each.example)[1] is not None],
            [each for each in whole.heldout if config.stage_of(each.example)[1] is not None],
            [],
        )
        if not taught.train:
            raise RunFailed(f"stages.{place}: no stage before it has trained on a domain of its prompts")
        voices = [Earlier(self._learner, self._ended[each]) for each in stages]
        places = {each.example.key: config.stage_of(each.example)[1] or 0 for each in [*taught.train, *taught.heldout]}
        parts = replace(self._parts, config=config, teacher=Teachers(voices, places))
        return DistillStage(replace(parts, prompts=taught), rewards=OneScorer(RewardSetup(config).open()))

    def _on(self, domain: str, place: int) -> PromptSets:
        """The prompts of a domain; "" stands for all."""
        whole = self._parts.prompts
        found = [each for each in whole.train if not domain or each.example.domain == domain]
        if not found:
            known = ", ".join(sorted({each.example.domain for each in whole.train})[:20])
            raise RunFailed(
                f"stages.{place}.domain: no training prompt is of the domain {domain!r}; there are: {known}"
            )
        return PromptSets(found, [each for each in whole.heldout if not domain or each.example.domain == domain], [])

    def _kept(self) -> dict[str, Tensor]:
        """A copy of the trained weights in this machine's memory."""
        return {name: tensor.detach().to("cpu", copy=True) for name, tensor in self._learner.trained_weights()}


def make(job: StageJob) -> ChainStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: ChainConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    if found := list(filter_problems(config.imitation.wanted)):
        raise RunFailed("; ".join(f"imitation.{path}: {why}" for path, why in found))
    from trainer.inference.build import build_sampler
    from trainer.inference.models import best_device, load_model, load_tokenizer

    base, reinforcing = job.models["base"], config.reinforcing
    tokenizer = load_tokenizer(base)
    prompts = prepare_prompts(examples, tokenizer, reinforcing)
    for line in prompts.left_out:
        job.monitor.log(line, level="warning")
    _check_domains(config, prompts.train)
    for place, first in enumerate(config.begins):
        if first > config.steps:
            job.monitor.log(
                f"stage {place + 1}, {config.stages[place].what}, would begin with step {first}: the run ends before",
                level="warning",
            )
    if not prompts.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    learner = Learner(load_model(base, config.model.dtype).to(best_device()), reinforcing)
    sampler = build_sampler(reinforcing, base, tokenizer)
    job.generated.by(sampler)
    rewards = RewardSetup(reinforcing, job.access, reward_folders(reinforcing.composition.parts, job.models))
    job.monitor.log(
        f"{len(prompts.train):,} training and {len(prompts.heldout):,} held-out prompts; {with_noun(len(config.stages), 'stages')}; "
        f"{learner.size:,} trained parameters"
    )
    parts = Parts(reinforcing, prompts, tokenizer, sampler, learner, job.run_dir, base)
    return ChainStage(job, parts, rewards.open(job.run_dir / "rewards.jsonl"))


def _check_domains(config: ChainConfig, prompts: Sequence[Prompt]) -> None:
    """Check before the first step that each stage has a prompt: a stage may begin days later."""
    known = {prompt.example.domain for prompt in prompts}
    for place, stage in enumerate(config.stages):
        if stage.domain and stage.domain not in known:
            there = ", ".join(sorted(known)[:20]) or "none"
            raise RunFailed(
                f"stages.{place}.domain: no training prompt is of the domain {stage.domain!r}; there are: {there}"
            )
