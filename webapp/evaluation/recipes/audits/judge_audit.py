"""Judge audit: is the judge right, in either order of the responses, and is it as good as people are?"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts import Example
from trainer.contracts.plurals import with_noun
from trainer.judges.combine import PairVerdict, pair_verdicts, unswapped
from trainer.judges.inputs import of_example
from trainer.metrics.audit import Audit, AuditCase
from webapp.judging.lines.audits import parse_case

from ... import report as r
from ..base import (
    Context,
    FoundCase,
    JudgedQuestion,
    JudgeFacts,
    NothingToScore,
    Recipe,
    RecipeConfig,
    RecipeOutcome,
    StoredCase,
    listed_twice,
    tag,
)
from ..pairs import FirstComparison, labelled_pairs, left_out, pair_of
from . import blocks

ORDERS = ("given", "swapped")
WORDS = {-1: "A", 0: "tie", 1: "B", None: None}
SIDES = {words: side for side, words in WORDS.items()}


class JudgeChoice(Section):
    version: int = knob(..., "A pairwise judge, at one of its versions", source="judges:pairwise,pairwise_rubric", ge=1)


class JudgeAuditConfig(RecipeConfig):
    """The judges to audit. Recorded verdicts are chosen besides the dataset; judges chosen here are asked."""

    judges: list[JudgeChoice] = knob([], "Judges to ask about the pairs of the dataset", max_length=8)
    max_pairs: int | None = knob(None, "Only the first pairs of the dataset; empty: all", unit="pairs", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        yield from listed_twice("judges", [each.version for each in self.judges])


@dataclass
class AuditedPair:
    """One pair judged by one judge. `pair` is the dataset's, if it has one of that key; `orders` those it was asked in;
    `samples` are the sides of each vote in the given order."""

    case: AuditCase
    pair: FirstComparison | None = None
    orders: tuple[str, ...] = ORDERS
    verdicts: list[int] = field(default_factory=list)
    samples: list[int | None] = field(default_factory=list)
    confidence: float | None = None
    version: int | None = None
    judge: int | None = None
    apart: bool = False  # another judge says otherwise
    beside: str = ""  # the judge that alone is right, of this one and the best


def run(context: Context) -> RecipeOutcome:
    known = {pair.key: pair for example in context.examples() if (pair := pair_of(example))}
    by_judge: dict[str, list[AuditedPair]] = defaultdict(list)
    for each in [*recorded(context, known), *asked(context)]:
        by_judge[each.case.judge].append(each)
    if not by_judge:
        raise NothingToScore("no pair has a label to compare a verdict with")
    measured = {judge: blocks.measured(rows) for judge, rows in sorted(by_judge.items())}
    protocols = {judge: blocks.protocol(rows) for judge, rows in by_judge.items()}
    bests = {each: _best(measured, [j for j in protocols if protocols[j] == each]) for each in set(protocols.values())}
    best = bests[min(bests, key=blocks.PROTOCOLS.index)]
    named = blocks.named(each.pair.raters for rows in by_judge.values() for each in rows if each.pair)
    apart = blocks.disagreeing(by_judge)
    for each in (each for rows in by_judge.values() for each in rows):
        each.apart = (each.case.group, each.case.pair) in apart
    judged = {each.case.pair for rows in by_judge.values() for each in rows}
    left = [case for case in left_out(context.examples()) if case.subject["example"] not in judged]
    found = r.Report(
        headline=r.headline(f"Accuracy of {best}", blocks.accuracy(measured[best].accuracy_net, best)),
        coverage=blocks.coverage(by_judge, len(known), left),
        blocks=[
            blocks.judges(measured, protocols),
            *blocks.groups(by_judge),
            *(
                table
                for each in sorted(bests, key=blocks.PROTOCOLS.index)
                for table in blocks.comparisons({j: by_judge[j] for j in by_judge if protocols[j] == each}, bests[each])
            ),
            *blocks.people(by_judge, named),
            *blocks.bias(by_judge),
            *blocks.voting(by_judge),
            *blocks.confidence(by_judge),
            *blocks.spending(blocks.verdict_ids(by_judge), context),
        ],
        entries=[_entry(judge, rows, measured[judge], protocols[judge]) for judge, rows in by_judge.items()],
    )
    return RecipeOutcome(found, [*(_case(each, named) for rows in by_judge.values() for each in rows), *left])


def _entry(judge: str, rows: list[AuditedPair], measured: Audit, protocol: str) -> r.Entry:
    """The judge's row on a leaderboard, with the numbers that its licence shows."""
    return r.Entry(
        judge,
        blocks.accuracy(measured.accuracy_net, judge),
        rows[0].version,
        rows[0].judge,
        protocol,
        known=blocks.known(rows, measured.order_consistency),
        **r.measured_on((each.case.group, each.case.pair, each.orders) for each in rows),
    )


def _best(measured: dict[str, Audit], judges: list[str]) -> str:
    return max(judges, key=lambda judge: measured[judge].accuracy_net.value or 0.0)


def recorded(context: Context, known: dict[str, FirstComparison]) -> Iterator[AuditedPair]:
    """The pairs of the recording. Lines that cannot be used were refused when it was sent in."""
    for line in context.lines():
        case = parse_case(line)
        yield AuditedPair(case, known.get(case.pair), ORDERS if "swapped" in line else ORDERS[:1])


def asked(context: Context) -> Iterator[AuditedPair]:
    """The labelled pairs of the dataset, as each of the config's judges sees them."""
    config = context.config
    pairs = {pair.key: pair for pair in labelled_pairs(context.examples(), config.max_pairs)} if config.judges else {}
    for choice in config.judges:
        facts = context.judge_facts(choice.version)
        inputs = [of_example(pair.example, pair=True) for pair in pairs.values()]
        answers = context.judge(choice.version, inputs, f"{facts.key} on {with_noun(len(inputs), 'pairs')}")
        verdicts = {key[0]: found for key, found in pair_verdicts(answers).items()}
        said: dict[str, list[JudgedQuestion]] = defaultdict(list)
        for each in answers:
            said[each.subject["example"]].append(each)
        for key, pair in pairs.items():
            yield _audited(facts, pair, verdicts.get(key), said[key])


def _audited(
    facts: JudgeFacts, pair: FirstComparison, found: PairVerdict | None, said: list[JudgedQuestion]
) -> AuditedPair:
    given = found.given if found else None
    swapped = None if found is None or found.swapped is None else -found.swapped
    case = AuditCase(facts.key, pair.key, pair.example.domain, pair.label or 0, given, swapped)
    sides = {each: _side(each) for each in said}
    decided = [side for side in sides.values() if side is not None]
    verdict = found.verdict if found else None
    return AuditedPair(
        case,
        pair,
        ORDERS if facts.spec["order"] == "both" else (facts.spec["order"],),
        verdicts=[each.id for each in said if each.id],
        samples=[side for each, side in sides.items() if each.subject.get("order") == "given"],
        confidence=decided.count(verdict) / len(decided) if verdict and len(decided) > 1 else None,
        version=facts.version,
        judge=facts.judge,
    )


def _side(said: JudgedQuestion) -> int | None:
    if said.parsed is None:
        return None
    strength = unswapped(said.parsed, said.subject["order"])["strength"]
    return int((strength > 0) - (strength < 0))


def _case(each: AuditedPair, named: Set[str]) -> FoundCase:
    case, pair = each.case, each.pair
    swapped = None if case.swapped is None else -case.swapped
    votes = sum(1 - abs(verdict - case.label) for verdict in (case.given, swapped) if verdict is not None)
    tags = [tag("judge", case.judge), "right" if votes > 0 else "wrong"]
    tags += [tag("group", case.group)] if case.group else []
    tags += [blocks.DISAGREE] if each.apart else []
    tags += [tag(blocks.ALONE, each.beside)] if each.beside else []
    tags += [blocks.bin_of(each.confidence)] if each.confidence is not None else []
    sides = {"given": case.given, "swapped": swapped}
    for name in each.orders:
        verdict = sides[name]
        outcome = "missing" if verdict is None else "right" if verdict == case.label else "wrong"
        tags.append(f"{outcome}:{name}")
    if any(sides[name] is None for name in each.orders):
        tags.append("missing")
    elif len(each.orders) > 1:
        tags.append("consistent" if case.given == swapped else "inconsistent")
    tags += [f"slice:{name}" for name in blocks.slices(pair)] if pair else []
    if pair and len(pair.raters) > 1:
        tags += [blocks.SEVERAL, *(["people disagree"] if len(set(pair.raters.values())) > 1 else [])]
        tags += [tag("rater", name) for name in pair.raters if name in named]
    subject = {"judge": case.judge, "pair": case.pair, "group": case.group}
    subject |= {"example": pair.key, "a": pair.a.id, "b": pair.b.id} if pair else {"example": case.pair}
    values = {
        "label": WORDS[case.label],
        **{name: WORDS[sides[name]] for name in each.orders},
        "votes": votes,
        "verdicts": each.verdicts,
    }
    return FoundCase({key: value for key, value in subject.items() if value}, values, tags)


def known_again(examples: Iterable[Example], cases: Iterable[StoredCase]) -> dict[str, dict[str, Any]]:
    """The numbers as in `_entry`, for an evaluation that has only its cases."""
    pairs = {pair.key: pair for example in examples if (pair := pair_of(example))}
    by_judge: dict[str, list[AuditedPair]] = defaultdict(list)
    for case in cases:
        subject, values = case.subject, case.values
        orders = tuple(name for name in ORDERS if name in values)
        if {"judge", "pair"} <= subject.keys() and values.get("label") in SIDES and orders:
            given, swapped = (SIDES[values.get(name)] for name in ORDERS)
            group, label = subject.get("group", ""), SIDES[values["label"]] or 0
            said = AuditCase(
                subject["judge"], subject["pair"], group, label, given, None if swapped is None else -swapped
            )
            by_judge[said.judge].append(AuditedPair(said, pairs.get(subject.get("example", "")), orders))
    return {judge: blocks.known(rows, blocks.measured(rows).order_consistency) for judge, rows in by_judge.items()}


def check(config: JudgeAuditConfig, dataset: bool, recording: bool) -> Iterator[FieldProblem]:
    if not config.judges and not recording:
        yield FieldProblem("recording", "choose recorded verdicts, or judges to ask")
    if config.judges and not dataset:
        yield FieldProblem("dataset", "choose the dataset whose pairs the judges are asked about")


RECIPE = Recipe(
    name="judge_audit",
    title="Judge audit",
    question="Is the judge right, whichever response stands first?",
    summary="Accuracy in both orders, order consistency and position bias of judges, from recorded verdicts or by asking.",
    icon="gavel",
    schema=JudgeAuditConfig,
    run=run,
    dataset="may",
    recording="may",
    check=check,
    known_again=known_again,
)
