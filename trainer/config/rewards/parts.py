"""The reward of a response: named parts, each of one kind, which a sum or an expression puts together.

The module needs no torch; `trainer.rewards` measures the parts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from ..errors import FieldProblem
from ..fields import knob
from .base import Judged, PartBase, part_kind, part_name
from .bounds import RewardBounds, bounds_of, summed
from .expression import FUNCTIONS, Expression, ExpressionInvalid, parse
from .tasks import TaskPart

RESERVED = ("mean", "std")
MOST_PARTS = 20
_EXCLUDED = "_excluded"
_OLD_KEYS = {"soft_tokens"}  # components of every kind had it

Protocol = Literal["criterion", "checklist", "likert", "pointwise", "pairwise"]
PROTOCOL_KINDS: dict[str, tuple[str, ...]] = {
    "criterion": ("criterion",),
    "checklist": ("checklist",),
    "likert": ("likert",),
    "pointwise": ("pointwise",),
    "pairwise": ("pairwise", "pairwise_rubric"),
}
"""The kinds of judges that can carry out each protocol."""


class VerifierPart(PartBase):
    """Met points over positive points, of the criteria that a program decides."""

    values: ClassVar[RewardBounds] = RewardBounds(high=1.0)
    kind: Literal["verifier"] = part_kind("verifier")
    name: str = part_name("verifier")

    @property
    def needs_rubric(self) -> bool:
        return True


class RubricPart(Judged):
    """Met points over positive points, of all criteria: programs decide those that have one, the judge the others."""

    values: ClassVar[RewardBounds] = RewardBounds(high=1.0)
    kind: Literal["rubric"] = part_kind("rubric")
    name: str = part_name("rubric")
    judge: str = knob(
        "",
        "The judge that decides the criteria without a verifier, such as `Grader v2`; empty: there are no such criteria",
        source="judge_names:criterion,checklist",
    )

    @property
    def needs_rubric(self) -> bool:
        return True

    @property
    def asks_judge(self) -> str:
        return self.judge

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return PROTOCOL_KINDS["criterion"] + PROTOCOL_KINDS["checklist"]

    @property
    def judges_criteria(self) -> bool:
        return bool(self.judge)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        for field in ("budget_tokens", "budget_money"):
            if getattr(self, field) is not None and not self.judge:
                yield FieldProblem(field, "no judge is asked; name one or leave this empty")


class JudgePart(Judged):
    """A judge's verdict on the response: on each criterion without a verifier, of the whole, or beside another answer."""

    kind: Literal["judge"] = part_kind("judge")
    name: str = part_name("judge")
    judge: str = knob("", "The judge to ask, such as `Grader v2`", source="judge_names")
    protocol: Protocol = knob(
        "criterion",
        "`criterion`, `checklist`: met points over positive points, for the criteria without a verifier. `likert`: the "
        "mean rating of these criteria, weighted by points. `pointwise`: one rating of the whole response. `pairwise`: the "
        "share of the two orders in which the response wins against another answer",
    )
    against: Literal["", "reference", "greedy", "sample"] = knob(
        "",
        "With `pairwise`, compare with: the example's reference answer, the policy's own likeliest answer (ReMax), or "
        "another sample for the same prompt (iterative DPO)",
        when=("protocol", ("pairwise",)),
    )

    @property
    def needs_rubric(self) -> bool:
        return self.protocol in ("criterion", "checklist", "likert")

    @property
    def asks_judge(self) -> str:
        return self.judge

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return PROTOCOL_KINDS[self.protocol]

    @property
    def judges_criteria(self) -> bool:
        return self.protocol in ("criterion", "checklist")

    @property
    def _values(self) -> RewardBounds:
        """A scale of ratings is the judge's own, which the config does not know."""
        if self.protocol == "pairwise":
            return RewardBounds(0.0, 1.0)
        return RewardBounds(high=1.0) if self.judges_criteria else RewardBounds()

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if not self.judge:
            yield FieldProblem("judge", "name the judge that is asked")
        if self.protocol == "pairwise" and not self.against:
            yield FieldProblem("against", "say what the response is compared with: choose one")
        if self.protocol != "pairwise" and self.against:
            yield FieldProblem("against", f"{self.protocol!r} compares with no other response; leave this empty")


class RewardModelPart(PartBase):
    """The score that a trained reward model gives prompt and response."""

    kind: Literal["reward_model"] = part_kind("reward_model")
    name: str = part_name("reward_model")
    model: str = knob("", "A registered reward model", source="models")
    max_tokens: int = knob(
        2048,
        "Prompt and response together. A longer text gets no score, because a part of it would be scored as if it were the whole",
        unit="tokens",
        ge=16,
        le=131072,
        advanced=True,
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if not self.model:
            yield FieldProblem("model", "name the reward model")


class FormatPart(PartBase):
    """1 if the response has the form that was asked for, else 0."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["format"] = part_kind("format")
    name: str = part_name("format")
    form: Literal["tags", "json", "pattern"] = knob(
        "tags",
        "`tags`: these tags, each once and in order. `json`: an object with these keys. `pattern`: an expression matches",
    )
    tags: list[str] = knob(
        ["think", "answer"],
        "With `tags`: the names of the tags. Outside of them only blanks are allowed",
        when=("form", ("tags",)),
    )
    keys: list[str] = knob([], "With `json`: keys that the object must have", when=("form", ("json",)))
    pattern: str = knob(
        "",
        "With `pattern`: an expression that matches the whole response; a dot also matches a line break",
        max_length=500,
        when=("form", ("pattern",)),
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if self.form == "tags" and not self.tags:
            yield FieldProblem("tags", "name at least one")
        for tag in self.tags:
            if not tag.replace("_", "").replace("-", "").isalnum():
                yield FieldProblem("tags", f"{tag!r} is not a name of a tag; use letters, digits, - and _")
        if self.form == "pattern" and not self.pattern:
            yield FieldProblem("pattern", "is empty, and would match only an empty response")


class OverlongPart(PartBase):
    """0 up to the soft limit; from there it falls to -1 at the length at which responses are cut (DAPO)."""

    values: ClassVar[RewardBounds] = RewardBounds(-1.0, 0.0)
    kind: Literal["overlong"] = part_kind("overlong")
    name: str = part_name("overlong")
    soft_tokens: int = knob(48, "Length from which the value falls", unit="tokens", ge=1)


class HttpPart(PartBase):
    """The answer of a service of your own: responses are posted to it, signed, a group at a time."""

    kind: Literal["http"] = part_kind("http")
    name: str = part_name("http")
    endpoint: str = knob("", "An endpoint of kind `Reward service`", source="endpoints:reward")
    on_missing: Literal["pause", "exclude"] = knob(
        "pause", "The reaction when the service cannot be reached: wait and ask again, or leave out the responses"
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if not self.endpoint:
            yield FieldProblem("endpoint", "name the endpoint that gets the responses")


class PythonPart(PartBase):
    """The value that a function of an installed package returns (entry points of the group `touchstone.rewards`)."""

    kind: Literal["python"] = part_kind("python")
    name: str = part_name("python")
    entry: str = knob(
        "", "Name of the entry point; TOUCHSTONE_REWARD_FUNCTIONS must allow it", source="functions:reward"
    )
    seconds: float = knob(
        10.0, "Time limit for a group of responses; a later answer does not count", unit="s", gt=0, le=3600
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if not self.entry:
            yield FieldProblem("entry", "name the function")


ChosenPart = VerifierPart | RubricPart | JudgePart | RewardModelPart | FormatPart | OverlongPart | HttpPart | PythonPart
"""The parts from which the reward of a policy is chosen."""
RewardPart = ChosenPart | TaskPart
PART_KINDS: dict[str, type[PartBase]] = {
    "rubric": RubricPart,
    "verifier": VerifierPart,
    "judge": JudgePart,
    "reward_model": RewardModelPart,
    "format": FormatPart,
    "overlong": OverlongPart,
    "http": HttpPart,
    "python": PythonPart,
}


def _with_kind(raw: Any) -> Any:
    """A part without a kind is a rubric. A part that was stored before there were kinds has a field of another kind."""
    if not isinstance(raw, dict):
        return raw
    kind = raw.get("kind") or "rubric"
    extra = _OLD_KEYS if kind in ("rubric",) else set()
    return {key: value for key, value in raw.items() if key not in extra} | {"kind": kind}


AnyPart = Annotated[ChosenPart, Field(discriminator="kind"), BeforeValidator(_with_kind)]


def parts_knob(help: str = "Parts of the reward: they are added up, or combined by the expression") -> Any:
    """The field `rewards` of a recipe."""
    return knob([RubricPart()], help, min_length=1, max_length=MOST_PARTS)


def expression_knob() -> Any:
    """The field `reward_expression` of a recipe whose field `rewards` is `parts_knob()`."""
    return knob(
        "",
        "How the parts make the reward, such as `gate(format, rubric) + 0.1 * brevity`; empty: the sum of the parts, each times its weight",
        max_length=1000,
        beside="rewards",
    )


@dataclass(frozen=True)
class Composition:
    """The reward of a response: all parts that are measured, and how they are put together. An empty `expression` stands for the weighted
    sum of the parts that are not shadows."""

    parts: tuple[RewardPart, ...]
    expression: str = ""

    @property
    def ceiling(self) -> float | None:
        """The most that a response can be worth; None if no bound is known."""
        counted = [part for part in self.parts if not part.shadow]
        try:
            expression = parsed(self.parts, self.expression)
        except ExpressionInvalid:
            return None
        if expression:
            found = bounds_of(expression.root, {part.name: part.bounds for part in counted})
        else:
            found = summed(part.bounds.times(part.weight) for part in counted)
        return found.high if counted and math.isfinite(found.high) else None


def problems(
    parts: Sequence[RewardPart],
    expression: str,
    longest: int,
    estimator: str,
    asynchronous: bool,
    sampled_pairs: bool = False,
) -> Iterator[FieldProblem]:
    """All problems. The paths begin at the config's root. `longest`: responses are cut at this many tokens. `sampled_pairs`: the recipe
    makes pairs of the samples of a prompt."""
    names = [part.name for part in parts]
    for i, part in enumerate(parts):
        if getattr(part, "against", "") == "sample" and not sampled_pairs:
            yield FieldProblem(f"rewards.{i}.against", "this recipe pairs no samples; choose 'reference' or 'greedy'")
        for problem in (*part.problems(), *_name_problems(part.name, names, i), *_fit(part, longest, estimator)):
            yield FieldProblem(f"rewards.{i}.{problem.path}", problem.message)
        if asynchronous and getattr(part, "against", "") == "greedy":
            yield FieldProblem(
                f"rewards.{i}.against",
                "'greedy' compares with a response of the weights that sampled, and these are gone by then; choose "
                "'reference' or runner.kind 'sync'",
            )
    yield from _budget_problems(parts)
    if all(part.shadow for part in parts):
        yield FieldProblem(
            "rewards.0.shadow", "every part is a shadow, so there is nothing to train on; at least one part must count"
        )
    elif expression.strip():
        yield from _expression_problems(parts, expression)


def parsed(parts: Sequence[RewardPart], expression: str) -> Expression | None:
    """The expression over the parts that count; None if their weighted sum is the reward. Raises ExpressionInvalid."""
    if not expression.strip():
        return None
    return parse(expression, [part.name for part in parts if not part.shadow])


def _expression_problems(parts: Sequence[RewardPart], expression: str) -> Iterator[FieldProblem]:
    try:
        found = parsed(parts, expression)
    except ExpressionInvalid as error:
        yield FieldProblem("reward_expression", str(error))
        return
    used = found.parts if found else ()
    for i, part in enumerate(parts):
        if not part.shadow and part.name not in used:
            yield FieldProblem(
                f"rewards.{i}.shadow", f"the expression does not use {part.name!r}; make it a shadow part"
            )
        if part.weight != 1:
            yield FieldProblem(
                f"rewards.{i}.weight", "an expression has its own factors; put the factor there and leave 1 here"
            )
        if part.name in FUNCTIONS:
            yield FieldProblem(f"rewards.{i}.name", f"{part.name} is a function of expressions; choose another name")


def _budget_problems(parts: Sequence[RewardPart]) -> Iterator[FieldProblem]:
    """A judge has one budget in a run, also if several parts ask it."""
    budgets: dict[str, tuple[int | None, float | None]] = {}
    for i, part in enumerate(parts):
        if isinstance(part, RubricPart | JudgePart) and part.asks_judge:
            mine = (part.budget_tokens, part.budget_money)
            if budgets.setdefault(part.asks_judge, mine) != mine:
                yield FieldProblem(
                    f"rewards.{i}.budget_tokens",
                    f"another part gives {part.asks_judge!r} another budget; give it the same",
                )


def _name_problems(name: str, names: Sequence[str], place: int) -> Iterator[FieldProblem]:
    if name in names[:place]:
        yield FieldProblem("name", f"two components are called {name!r}")
    if name in RESERVED:
        yield FieldProblem("name", f"reward/{name} is a metric of the whole reward; choose another")
    if name.endswith(_EXCLUDED) and name.removesuffix(_EXCLUDED) in names:
        yield FieldProblem(
            "name", f"reward/{name} counts what {name.removesuffix(_EXCLUDED)!r} leaves out; choose another"
        )


def _fit(part: RewardPart, longest: int, estimator: str) -> Iterator[FieldProblem]:
    if isinstance(part, OverlongPart) and part.soft_tokens >= longest:
        yield FieldProblem("soft_tokens", f"must be below rollout.max_new_tokens, which is {longest}")
    if isinstance(part, JudgePart) and part.against == "greedy" and estimator == "remax":
        yield FieldProblem(
            "against",
            "the responses are compared with the 'greedy' one already, and objective.advantage 'remax' would subtract its "
            "reward once more; choose another estimator",
        )


UNJUDGED_CHOICES = "name a judge in the reward, leave those criteria out (data.unjudged 'drop_criteria'), or those prompts ('drop_prompts')"


def needs_rubric(parts: Sequence[RewardPart], scaffold: bool) -> bool:
    """Whether prompts without a rubric cannot be used for training. Shadow parts do not need one."""
    return scaffold or any(part.needs_rubric for part in parts if not part.shadow)


def data_problems(
    parts: Sequence[RewardPart], scaffold: bool, unjudged: str, counts: Mapping[str, Mapping[str, int]]
) -> Iterator[FieldProblem]:
    """Problems if no training prompt has what the reward needs, or if criteria need a judge and the reward has none. `counts` are the
    training counts of the data, by split. Shadow parts need nothing."""
    counted = [(i, part) for i, part in enumerate(parts) if not part.shadow]
    train = counts.get("train", {})
    if needs_rubric(parts, scaffold) and not train.get("rubrics"):
        return  # the recipe's needs say so
    if any(isinstance(part, RubricPart) and not part.judge for _, part in counted):
        yield from _unjudged_problems(unjudged, counts)
    for i, part in counted:
        if isinstance(part, VerifierPart) and not train.get("verifiable"):
            yield FieldProblem(
                f"rewards.{i}.kind", "no training prompt has a criterion with a verifier that earns points"
            )
        if isinstance(part, JudgePart) and part.needs_rubric and not train.get("judgeable"):
            yield FieldProblem(
                f"rewards.{i}.protocol", "no training prompt has a criterion without a verifier that earns points"
            )
        if isinstance(part, JudgePart) and part.against == "reference" and not train.get("references"):
            yield FieldProblem(f"rewards.{i}.against", "no training prompt has a reference answer to compare with")


def _unjudged_problems(unjudged: str, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
    prompts, criteria = (sum(each.get(key, 0) for each in counts.values()) for key in ("unjudged", "unjudged_criteria"))
    if not prompts:
        return
    train = counts.get("train", {})
    said = f"{criteria:,} criteria of {prompts:,} prompts have no verifier, so no response to them could be scored"
    if unjudged == "refuse":
        yield FieldProblem("data.unjudged", f"{said}; {UNJUDGED_CHOICES}")
    elif not train.get("verified" if unjudged == "drop_prompts" else "verifiable"):
        yield FieldProblem("data.unjudged", f"{said}, and without them no training prompt is left")
