"""Recipe `alternating`: turns of a judge and of a rubric writer. Each turn is the stage of a sampled policy while the other role
does not change (Rubric-ARM).
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trainer.config.metrics.arm import SPLIT
from trainer.config.recipes.alternating import OUTPUTS, ROLES, AlternatingConfig, Role
from trainer.contracts import Example, Histogram
from trainer.inference.sampling import SampleRequest
from trainer.monitors import Records
from trainer.rollouts import Rewards
from trainer.seeding import derive_seed
from trainer.tasks.arm import ArmWriting, JudgingByRubric, KeptRubric, criteria_of

from ..learner.export import write_model
from ..learner.learner import Learner
from ..policy.evaluation import evaluate
from ..policy.learning import LearningWatch
from ..policy.missing_rewards import MissingRewards
from ..policy.parts import Parts
from ..policy.reports import rollout_records
from ..policy.scoring_watch import ScoringWatch
from ..prompts.data import Prompt, PromptSets, read_examples
from ..prompts.task_questions import answered, posed_prompts
from ..roles import score_vectors
from ..roles.frozen_judge import FrozenJudge, JudgedRewards, OwnRewards
from ..roles.rubric_trials import Trials
from ..roles.turn_watch import TurnWatch, panel_of, tried
from ..roles.two_roles import TwoRoles
from ..roles.voting import voted
from ..roles.warmup import Lessons, Warming, lessons
from ..session.errors import RunFailed
from ..session.spans import Work
from ..session.stage import ModelOutput, Progress, StageJob, State, Tell
from .policy import PolicyStage
from .sft import end_tokens

BOTH, DRAWN = (False, True), (False,)
"""The orders in which the judge is asked: held-out pairs in both, training pairs in the one that was drawn for the pair."""


@dataclass(frozen=True)
class RoleTurn:
    """A turn under way, numbered from 0. In a judge's turn, `rubrics` are those that the writer wrote for it. `stage` is None if the judge
    has nothing to learn from: the steps of the turn change no weights.
    """

    number: int
    role: Role
    rubrics: Mapping[str, KeptRubric]
    stage: PolicyStage | None


class RoleTell:
    """The `Tell` of a turn: metrics of a sampled policy get the role's prefix."""

    def __init__(self, tell: Tell, role: Role) -> None:
        self._tell, self._role, self.step = tell, role, tell.step
        self.artifact, self.alarm, self.check = tell.artifact, tell.alarm, tell.check
        self.paused, self.resumed = tell.paused, tell.resumed
        self.ran, self.beside = tell.ran, tell.beside

    def metrics(self, values: dict[str, float], histograms: dict[str, Histogram] | None = None) -> None:
        self._tell.metrics(self._own(values), self._own(histograms) if histograms else None)

    def rollouts(self, records: Records) -> None:
        self._tell.rollouts(records)

    def log(self, message: str, level: Any = "info") -> None:
        self._tell.log(f"{self._role}: {message}", level)

    def watch(self, phase: str, work: Work) -> Progress:
        return self._tell.watch(f"{self._role}: {phase}", work)

    def progress(self, phase: str, work: Work) -> Progress:
        return self._tell.progress(f"{self._role}: {phase}", work)

    def _own(self, found: dict[str, Any]) -> dict[str, Any]:
        return {f"{self._role}/{key}" if key.startswith(SPLIT) else key: value for key, value in found.items()}


class AlternatingStage:
    """After a warm-up, steps belong to turns, and turns to rounds. Seed, turn and step decide every random choice."""

    def __init__(
        self, job: StageJob, parts: Mapping[Role, Parts], examples: Sequence[Example], found: Mapping[Role, Lessons]
    ) -> None:
        self._job, self._parts = job, parts
        self._config: AlternatingConfig = job.config
        config = self._config
        writer = parts["writer"]
        self._learner, self._sampler, self._tokenizer = writer.learner, writer.sampler, writer.tokenizer
        self._roles = TwoRoles(writer.config, writer.learner, writer.sampler)  # type: ignore[arg-type]
        self._warming = Warming(config, found, writer.learner, self._roles, job.run_dir)
        self._shards = shards([e for e in examples if e.split != "heldout"], writer.prompts.train, config)
        judge = config.turn("judge")
        self._judge = FrozenJudge(
            judge, config.data.form, config.data.judgement, self._tokenizer, self._sampler, self._roles
        )
        self._evaluator = JudgedRewards(config.turn("writer"), self._judge, BOTH, job.access).open()
        self._missing = {role: MissingRewards(config.turn(role).composition.parts) for role in ROLES}
        """Steps of each role without a reward; the counts continue from turn to turn."""
        self._watches = {role: TurnWatch(config, role) for role in ROLES}
        self._learning = {role: LearningWatch(config.turn(role), role) for role in ROLES}
        self._panel = panel_of(writer.prompts.heldout, config)
        self._turn: RoleTurn | None = None
        self.evaluates = bool(writer.prompts.heldout)

    def open(self, step: int) -> None:
        if self._turn is not None and self._turn.stage is not None:
            self._open(self._turn.stage, self._turn.role, step)

    def step(self, number: int, tell: Tell) -> None:
        if warming := self._config.warming_at(number):
            self._warming.step(number, warming, tell)
            return
        wanted, role = self._config.turn_at(number)
        self._judge.version = number - 1
        if self._turn is None or self._turn.number != wanted:
            self._turn = self._begun(wanted, role, number, tell)
        begins = number == self._config.warm_steps + 1 > 1
        phase = {"phase/number": float(self._warming.phases + 1)} if begins else {}
        tell.metrics({"turn/round": float(wanted // 2 + 1), "turn/judge": float(role == "judge")} | phase)
        if self._turn.stage is not None:
            self._turn.stage.step(number, RoleTell(tell, role))
            if self._config.ends_turn(number):
                panel = tried(self._trials(number, "panel", wanted), role, self._panel, tell)
                self._watches[role].turn_over(number, number - self._config.turn_steps + 1, panel, tell)

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        """Measures of the writer's greedy rubrics for held-out pairs, and of the greedy judge's verdicts by them in both orders."""
        parts, self._judge.version = self._parts["writer"], number
        count = len(parts.prompts.heldout)
        watch = ScoringWatch(tell, count, "judging held-out pairs")
        progress = tell.watch("writing held-out rubrics", "evaluation")
        with self._roles.speaking("writer", number):
            found = evaluate(parts, self._evaluator, f"eval/{number}", progress, watch)
        tell.rollouts(partial(rollout_records, found.trajectories, parts.token_texts, "eval"))
        values = found.values | ArmWriting(self._config).held_out(answered(found.trajectories, parts.tasks))
        if k := self._config.votes:
            values |= voted(self._trials(number, "votes"), parts.prompts.heldout, k, tell)
        return values

    def state(self) -> State:
        missing = {role: counts.state_dict() for role, counts in self._missing.items()}
        watches = {role: watch.state_dict() for role, watch in self._watches.items()}
        values: dict[str, Any] = {"trains": self._roles.trained, "missing": missing, "watches": watches}
        values["learning"] = {role: watch.state_dict() for role, watch in self._learning.items()}
        if self._config.warmup:
            values["warmup"] = self._warming.state()
        if (turn := self._turn) is not None:
            kept = {key: [rubric.text, rubric.cut] for key, rubric in turn.rubrics.items()}
            values["turn"] = {"number": turn.number, "role": turn.role, "rubrics": kept}
            if turn.stage is not None:
                values["turn"]["stage"] = turn.stage.state().values
        return State(values, self._roles.state_tensors())

    def restore(self, step: int, state: State) -> None:
        self._roles.load_state_tensors(state.values["trains"], state.tensors)
        self._warming.restore(state.values.get("warmup", {}))
        for role, counts in self._missing.items():
            counts.load_state_dict(state.values["missing"][role])
        for role, kept in state.values.get("watches", {}).items():
            self._watches[role].load_state_dict(kept)
        for role, kept in state.values.get("learning", {}).items():
            self._learning[role].load_state_dict(kept)
        if (saved := state.values.get("turn")) is None:
            return
        number, turn_of = saved["number"], saved["role"]
        pairs = self._parts["writer"].tasks
        rubrics = {key: self._kept(pairs[key], text, cut) for key, (text, cut) in saved["rubrics"].items()}
        stage = None
        if "stage" in saved:
            stage = self._stage(number, turn_of, rubrics)
            stage.restore(step, State(saved["stage"], self._learner.state_tensors()))
        self._turn = RoleTurn(number, turn_of, rubrics, stage)

    def outputs(self) -> Iterator[ModelOutput]:
        for role in ROLES:
            yield ModelOutput(OUTPUTS[role], OUTPUTS[role], partial(self._write, role))

    def close(self) -> None:
        if self._turn is not None and self._turn.stage is not None:
            self._turn.stage.scorer.close()
        self._evaluator.close()
        self._sampler.close()
        self._learner.close()

    def _write(self, role: Role, folder: Path) -> None:
        with self._roles.held(role):
            write_model(folder, self._config, self._parts[role].base, self._learner)

    def _begun(self, number: int, role: Role, step: int, tell: Tell) -> RoleTurn:
        """The next turn. If a stop interrupts the start of the turn, the last turn stays."""
        if role == self._config.first:
            self._measure(number, step, tell)
        rubrics: dict[str, KeptRubric] = {}
        if role == "judge":
            rubrics = self._rubrics(number, step, tell)
            readable = sum(bool(rubric.criteria) for rubric in rubrics.values())
            tell.metrics({"turn/rubrics": float(len(rubrics)), "turn/readable": float(readable)})
        stage: PolicyStage | None = None
        try:
            stage = self._stage(number, role, rubrics)
        except RunFailed as nothing:
            tell.log(f"this turn of the judge changes no weights: {nothing}", "warning")
        if self._turn is not None and self._turn.stage is not None:
            self._turn.stage.scorer.close()
        self._roles.train(role)
        if stage is not None:
            for line in stage.parts.prompts.left_out:
                tell.log(f"{role}: {line}", "warning")
            self._open(stage, role, step - 1)
        return RoleTurn(number, role, rubrics, stage)

    def _measure(self, number: int, step: int, tell: Tell) -> None:
        """Measure, on the first pairs of the round and before both of its turns, the variances on which the order of turns rests."""
        if not (most := self._config.variances.pairs):
            return
        trials = self._trials(step - 1, "variances", number)
        tell.metrics(score_vectors.measured(trials, self._learner, self._roles, self._prompts(number)[:most], tell))

    def _trials(self, version: int, *purpose: str | int) -> Trials:
        return Trials(self._config, self._tokenizer, self._sampler, self._roles, purpose, version)

    def _stage(self, number: int, role: Role, rubrics: Mapping[str, KeptRubric]) -> PolicyStage:
        """The stage of a turn. Raises RunFailed if there is nothing to learn from: for a judge, if no rubric can be read."""
        config = self._config.turn(role)
        config = config.model_copy(update={"seed": derive_seed(self._config.seed, "turn", number)})
        task = JudgingByRubric(self._config, rubrics, number) if role == "judge" else ArmWriting(self._config)
        prompts = posed_prompts(self._shards[number // 2], self._tokenizer, config, task)
        rewards: Rewards = (
            OwnRewards(config) if role == "judge" else JudgedRewards(config, self._judge, DRAWN, self._job.access)
        )
        whole = self._parts[role]
        parts = Parts(
            config, prompts, self._tokenizer, self._sampler, self._learner, whole.run_dir, whole.base, task=task
        )
        missing, hacking, learning = self._missing[role], self._watches[role], self._learning[role]
        return PolicyStage(parts, rewards=rewards, missing=missing, hacking=hacking, learning=learning)

    def _open(self, stage: PolicyStage, role: Role, step: int) -> None:
        stage.open(step)
        self._roles.sampler_has(role)

    def _rubrics(self, number: int, step: int, tell: Tell) -> dict[str, KeptRubric]:
        """One rubric for each pair of the round's shard, sampled once from the writer as it is now."""
        prompts = self._prompts(number)
        rollout = self._parts["writer"].config.rollout
        requests = [
            SampleRequest(
                prompt.tokens,
                rollout.max_new_tokens,
                rollout.temperature,
                rollout.top_p,
                tuple(rollout.stop),
                derive_seed(self._config.seed, "rubric", number, prompt.example.key),
            )
            for prompt in prompts
        ]
        with self._roles.speaking("writer", step - 1):
            written = self._sampler.sample(requests, tell.watch("writing the turn's rubrics", "rollout"))
        return {
            prompt.example.key: self._kept(prompt, result.text, result.finish_reason == "length")
            for prompt, result in zip(prompts, written, strict=True)
        }

    def _prompts(self, number: int) -> list[Prompt]:
        """The writer's questions about the pairs of the turn's round."""
        keys = {example.key for example in self._shards[number // 2]}
        found = self._parts["writer"].prompts.train
        return [prompt for prompt in found if prompt.facts["pair"]["example"] in keys]

    def _kept(self, prompt: Prompt, text: str, cut: bool) -> KeptRubric:
        return KeptRubric(text, cut, criteria_of(prompt, text, cut, self._config))


def shards(examples: Sequence[Example], prompts: Sequence[Prompt], config: AlternatingConfig) -> list[list[Example]]:
    """The examples with questions, dealt out to the rounds, so that each round has its own. Raises RunFailed if there are too few."""
    asked = {prompt.facts["pair"]["example"] for prompt in prompts}
    usable = [example for example in examples if example.key in asked]
    if len(usable) < config.rounds:
        raise RunFailed(
            f"turn_steps: {config.rounds} rounds need pairs of their own, and the training data have {len(usable)} examples "
            "with pairs; set it higher, or take fewer steps"
        )
    random.Random(derive_seed(config.seed, "shards")).shuffle(usable)  # noqa: S311 - order, not secrecy
    return [usable[place :: config.rounds] for place in range(config.rounds)]


def make(job: StageJob) -> AlternatingStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: AlternatingConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.build import build_sampler
    from trainer.inference.models import best_device, load_model, load_tokenizer, second_device

    base = job.models["base"]
    tokenizer = load_tokenizer(base)
    halves = {role: config.turn(role) for role in ROLES}
    prompts = posed_prompts(examples, tokenizer, halves["writer"], ArmWriting(config))
    for line in prompts.left_out:
        job.monitor.log(line, level="warning")
    if not prompts.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    if config.turn_steps >= config.steps - config.warm_steps:
        job.monitor.log(
            f"the run ends before the {config.order[1]} has a turn, so that its model stays as it began",
            level="warning",
        )
    model = load_model(base, config.model.dtype).to(best_device())
    taught = lessons(examples, config, tokenizer, end_tokens(model, tokenizer))
    for role, mine in taught.items():
        for line in mine.told(role):
            job.monitor.log(line, level="warning")
    learner = Learner(model, config)
    # the role that is trained and the role that speaks are two models that share no tensor
    sampler = build_sampler(halves["writer"], base, tokenizer, second_device())
    job.generated.by(sampler)
    job.monitor.log(
        f"{len(prompts.train):,} training and {len(prompts.heldout):,} held-out pairs in {config.rounds} rounds; "
        f"{learner.size:,} trained parameters of each role"
    )
    found: dict[Role, Parts] = {
        role: Parts(
            half,
            prompts if role == "writer" else PromptSets([], [], []),
            tokenizer,
            sampler,
            learner,
            job.run_dir,
            base,
        )
        for role, half in halves.items()
    }
    return AlternatingStage(job, found, examples, taught)
