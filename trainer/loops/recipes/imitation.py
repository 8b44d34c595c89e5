"""A stage of a chain that imitates: the policy answers, filters choose, and the chosen answers are learnt token by token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainer.config.recipes.chain import Imitation
from trainer.contracts.rollout_examples import SampledResponse, filter_responses
from trainer.rewards.rejection import form_fault, share_right
from trainer.rollouts import Groups, RewardScorer, Trajectory, sample_and_score

from ..learner.learner import Marked
from ..policy.parts import Parts
from ..policy.reports import rollout_records
from ..policy.scoring_watch import ScoringWatch
from ..prompts.planner import Planner
from ..session.stage import StageJob, State, Tell
from ..supervised.fitting import Fitter, Loss
from ..supervised.token_loss import TokenLoss


@dataclass(frozen=True)
class KeptAnswer:
    """An answer of the policy: the sampled tokens, and the prompt that they answer."""

    key: str
    prompt: tuple[int, ...]
    response: tuple[int, ...]

    @property
    def marked(self) -> Marked:
        return Marked.response(self.prompt, self.response)


class ImitationStage:
    """`choose` comes first, while the sampler has the weights that answer; then each step is one update on a batch."""

    def __init__(self, job: StageJob, parts: Parts, scorer: RewardScorer, asked: Imitation) -> None:
        rollout = parts.config.rollout.model_copy(
            update={"prompts_per_step": min(asked.prompts, len(parts.prompts.train)), "group_size": asked.responses}
        )
        self._config = parts.config.model_copy(update={"rollout": rollout.model_copy(update={"budget": None})})
        self._job, self._parts, self._scorer, self._asked = job, parts, scorer, asked
        self._fitter: Fitter[KeptAnswer] | None = None
        """None if the filters kept nothing: the steps then change no weights."""
        self._kept: list[KeptAnswer] = []
        self._token_loss = TokenLoss(parts.learner)

    def choose(self, tell: Tell) -> None:
        """Sample answers and choose which are learnt. Raises StopRequested, with nothing changed."""
        parts = self._parts
        plans = Planner(self._config, parts.prompts.train, parts.tokenizer).plan(1)
        watch = ScoringWatch(tell, len(plans), "scoring answers to imitate")
        groups = Groups(plans, parts.tasks, self._scorer, f"imitate/{tell.step}")
        progress = tell.watch("sampling answers to imitate", "rollout")
        found = sample_and_score(parts.sampler, plans, self._config.rollout, groups, self._scorer, progress, watch)
        answers = found.trajectories
        kept, steps = filter_responses(
            [_sampled(t) for t in answers], parts.tasks, self._asked.wanted, form_fault(self._asked.wanted)
        )
        by_id = {_place(t): t for t in answers}
        self._begin([_learnt(by_id[each.group, each.index]) for each in kept if by_id[each.group, each.index].length])
        left_out = {f"sift/{step.key}": float(len(step.left_out)) for step in steps if step.key != "no_example"}
        tell.metrics({"sift/sampled": float(len(answers)), "sift/kept": float(len(self._kept))} | left_out)
        tell.rollouts(partial(rollout_records, answers, parts.token_texts, "train"))
        if not self._kept:
            tell.log(
                f"of {len(answers):,} responses the filters keep none, so this stage changes no weights", "warning"
            )

    def open(self, step: int) -> None:
        """Nothing to prepare."""

    def step(self, number: int, tell: Tell) -> None:
        if self._fitter is None:
            return
        fitted = self._fitter.step(number, self._asked.batch_size, self._loss, tell, "imitating")
        tell.metrics(fitted.metrics(self._config.optim.micro_batch_tokens) | {"train/epoch": self._fitter.epoch})

    def state(self) -> State:
        kept = [[each.key, list(each.prompt), list(each.response)] for each in self._kept]
        order = self._fitter.state() if self._fitter else None
        return State({"kept": kept, "order": order}, self._parts.learner.state_tensors())

    def restore(self, step: int, state: State) -> None:
        self._begin([KeptAnswer(key, tuple(prompt), tuple(response)) for key, prompt, response in state.values["kept"]])
        if self._fitter:
            self._fitter.restore(state.values["order"])

    def _begin(self, kept: Sequence[KeptAnswer]) -> None:
        self._kept = list(kept)
        if self._kept:
            learner, run_dir = self._parts.learner, self._job.run_dir
            self._fitter = Fitter(learner, self._config, run_dir, self._kept, lambda each: (each.marked.read,), True)

    def _loss(self, micro: Sequence[KeptAnswer], batch: Sequence[KeptAnswer]) -> Loss:
        return self._token_loss.of([each.marked for each in micro], [each.marked for each in batch])


def _place(trajectory: Trajectory) -> tuple[int, int]:
    return trajectory.plan.group, trajectory.plan.index


def _learnt(trajectory: Trajectory) -> KeptAnswer:
    return KeptAnswer(trajectory.plan.example_key, trajectory.prompt, trajectory.tokens)


def _sampled(trajectory: Trajectory) -> SampledResponse:
    plan, reward = trajectory.plan, trajectory.reward
    return SampledResponse(
        plan.example_key,
        0,
        plan.group,
        plan.index,
        trajectory.text,
        reward.total,
        cut=trajectory.stop == "length",
        right=share_right((each.points, each.verdict.met, each.verdict.source) for each in reward.criteria),
        parts=_values(reward.components),
        failed=trajectory.stop == "error",
    )


def _values(components: Mapping[str, Any]) -> dict[str, float | None]:
    return dict(components)
