"""Recipe `sft`: supervised fine-tuning on conversations, demonstrations, preferred answers or the best of several."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Holdings, Sampling
from ..metrics.phases import STORED_PHASES
from ..metrics.policy import JUDGE
from ..metrics.supervised import FITTING
from ..on_policy import Rollout
from ..presets import Preset, quick, small
from ..recipe import Amount, DataNeed, Metric, Output, Recipe, RecipeConfig, Slot, whole_number
from ..rewards.parts import RewardPart, RubricPart
from ..sections import phases
from ..sections.common import Evaluation
from ..sections.phase_kinds import FittingPhase
from .policy import PolicyConfig


class SftData(Section):
    source: Literal["conversations", "references", "chosen", "best"] = knob(
        "conversations",
        "The texts that the model learns. `conversations`: the assistant's turns of the prompt, and its only answer. `references`: the reference answer. `chosen`: "
        "answers that were preferred and never rejected. `best`: the answer with the highest reward. The reward is stored with the answer; if the rubric "
        "needs no judge, its score is used",
    )
    turns: Literal["last", "all"] = knob(
        "last",
        "Learn only the last turn of the assistant, or every one; the other turns stay in the context",
        when=("source", ("conversations",)),
    )
    scale: str = knob(
        "",
        "With `chosen`: ratings on the scale of this name count as comparisons too",
        max_length=200,
        advanced=True,
        when=("source", ("chosen",)),
    )
    min_reward: float | None = knob(
        None,
        "With `best`: prompts whose best answer has a lower reward are left out and counted",
        advanced=True,
        when=("source", ("best",)),
    )
    select: Literal["all", "random", "cover", "distance"] = knob(
        "all",
        "Which of the training conversations are learnt. `random`: a share, drawn by the seed. `cover`: a share that covers the rest, hard ones first "
        "(K-center, weighted by perplexity under the starting model). `distance`: K-center without the weights",
        advanced=True,
    )
    share: float = knob(
        0.1,
        "The share of the conversations that is learnt",
        gt=0,
        lt=1,
        advanced=True,
        when=("select", ("random", "cover", "distance")),
    )
    max_tokens: int = knob(1024, "Longer conversations are left out and counted", unit="tokens", ge=8, le=131072)
    shuffle: bool = knob(True, "Shuffle the examples again for each epoch")


class SftEvaluation(Evaluation):
    generate: bool = knob(
        False,
        "Answer the held-out prompts greedily and score the answers by the prompts' rubrics; verifiers decide the criteria that have one",
    )
    max_new_tokens: int = knob(
        64, "Longest such answer, in tokens; longer ones are cut", unit="tokens", ge=1, le=65536, when=("generate", ())
    )
    judge: str = knob(
        "",
        "The judge that decides the criteria without a verifier, such as `Grader v2`; empty: prompts with such criteria are not scored",
        source="judge_names:criterion,checklist",
        when=("generate", ()),
    )


SOURCES = {"conversations": "turns", "references": "references", "chosen": "chosen", "best": "valued"}
"""For each source of answers the count of what can be learnt from it."""


JUDGE_AT = "evaluation.judge"
ANSWERED_AT_ONCE = 32
"""The number of held-out prompts that the model answers at once."""


class SftConfig(RecipeConfig):
    """Raise the probability of the answers in the data, token by token."""

    phase_kind: ClassVar[type[phases.Phase] | None] = FittingPhase
    data: SftData = SftData()
    batch_size: int = knob(16, "Conversations per step", unit="conversations", ge=1, le=65536)
    mean_over: Literal["token", "sequence"] = knob(
        "token",
        "`token`: every learnt token of a step counts the same; `sequence`: every conversation counts the same",
        advanced=True,
    )
    phases: list[FittingPhase] = phases.phases_knob()
    evaluation: SftEvaluation = SftEvaluation()

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        yield from phases.problems(self.phases, self.steps, self.evaluation)
        if self.data.scale and self.data.source != "chosen":
            yield FieldProblem(
                "data.scale", f"is used only with data.source 'chosen'; data.source is {self.data.source!r}"
            )
        if self.data.min_reward is not None and self.data.source != "best":
            yield FieldProblem(
                "data.min_reward", f"is used only with data.source 'best'; data.source is {self.data.source!r}"
            )
        if self.data.turns == "all" and self.data.source != "conversations":
            yield FieldProblem(
                "data.turns",
                f"data.source {self.data.source!r} names one answer, so there is only one turn to learn; set 'last'",
            )

        if self.evaluation.judge and not self.evaluation.generate:
            yield FieldProblem("evaluation.judge", "needs generated answers to judge; set evaluation.generate")

    def scoring(self) -> PolicyConfig:
        """The scoring of answers to held-out prompts: by rubrics alone, in a config of a policy run."""
        part, longest = RubricPart(judge=self.evaluation.judge), self.evaluation.max_new_tokens
        made = PolicyConfig(seed=self.seed, model=self.model, rollout=Rollout(max_new_tokens=longest))
        return made.model_copy(update={"rewards": [part]})

    def asking(self, path: str) -> RewardPart | None:
        return self.scoring().rewards[0] if path == JUDGE_AT else super().asking(path)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from phases.data_problems(self.phases, counts)
        train, source = counts["train"], self.data.source
        if self.data.scale or train.get(SOURCES[source]):
            return  # ratings on a scale become preferences only when they are read
        others = [f"{train[count]:,} with {name!r}" for name, count in SOURCES.items() if train.get(count)]
        if others:
            reason = f"the data has nothing to learn with {source!r}; it has {', '.join(others)}"
            yield FieldProblem("data.source", reason)

    @classmethod
    def suited(cls, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        best = max(SOURCES, key=lambda name: counts["train"].get(SOURCES[name], 0))
        return {"data": {"source": best}}

    def holdings(self) -> Holdings:
        answers = Sampling("learner", self.data.max_tokens, self.evaluation.max_new_tokens, ANSWERED_AT_ONCE)
        return Holdings(self.data.max_tokens, sampling=answers if self.evaluation.generate else None)

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        steps, batch = whole_number(raw, "steps"), whole_number(raw, "batch_size")
        longest = whole_number(raw, "data", "max_tokens")
        total = steps * batch if steps and batch else None
        return [
            Amount("Conversations in all", total, f"{steps or '–'} steps × {batch or '–'} conversations"),
            Amount(
                "Tokens at most", total * longest if total and longest else None, f"{longest or '–'} per conversation"
            ),
        ]


RECIPE = Recipe(
    name="sft",
    title="Supervised fine-tuning",
    summary="Teach a model to answer as the data does: from conversations, demonstrations, preferred or best answers.",
    schema=SftConfig,
    needs=(
        DataNeed("turns", "conversations with an answer", either="answers"),
        DataNeed("references", "prompts with a reference answer", either="answers"),
        DataNeed("chosen", "prompts with an answer that was preferred", either="answers"),
        DataNeed("valued", "prompts with several answers whose reward is known", either="answers"),
    ),
    slots=(Slot("base", "model.name"), Slot("judge", JUDGE_AT, "judge")),
    brief=("{data.source}",),
    measured_by=("evaluation.*", "data.source", "data.max_tokens"),
    headline="eval/loss",
    stats=("eval/loss", "train/loss"),
    metrics=(
        Metric(
            "eval/loss",
            "Held-out loss",
            "Mean negative log-probability of the learnt tokens of conversations that are never trained on. Healthy: falls, then reaches a plateau. If it rises "
            "while the training loss falls, the model overfits.",
            "outcome",
            unit="nats/token",
            better="lower",
            optional=True,
        ),
        Metric(
            "eval/rubric_score",
            "Held-out rubric score",
            "Mean score of greedy answers to the held-out prompts, by their rubrics: verifiers decide the criteria that have one, and the judge decides "
            "the others.",
            "outcome",
            better="higher",
            band="eval/rubric_score_se",
            band_times=1.96,
            optional=True,
        ),
        Metric(
            "eval/rubric_score_se",
            "Standard error of the held-out score",
            "Over prompts.",
            "outcome",
            better="lower",
            optional=True,
        ),
        Metric(
            "eval/scored",
            "Held-out answers scored",
            "Number of held-out prompts behind the score.",
            "data",
            unit="prompts",
            optional=True,
        ),
        Metric(
            "train/loss",
            "Training loss",
            "Mean negative log-probability of the learnt tokens of the step, before its update.",
            "outcome",
            unit="nats/token",
            better="lower",
        ),
        Metric("train/tokens", "Tokens learnt", "Tokens of the step that count in the loss.", "data", unit="tokens"),
        *JUDGE,
        *STORED_PHASES,
        *FITTING,
    ),
    samples="text",
    outputs=(Output("policy", "Model"),),
    icon="graduation-cap",
    paper="Ouyang et al., 2022, Training language models to follow instructions with human feedback",
    presets=(
        quick(batch_size=4, data={"max_tokens": 256}),
        Preset(
            "best",
            "The best answers",
            "Rejection sampling: of each prompt's stored answers, the one with the highest reward is learnt.",
            {"data": {"source": "best"}},
        ),
        small(batch_size=4, data={"max_tokens": 512}),
    ),
    example={
        "steps": 3,
        "data": {"source": "references"},
        "batch_size": 2,
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
