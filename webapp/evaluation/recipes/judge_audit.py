"""Judge audit (METHODS 2): is the judge right, whichever response stands first, and is it as good as people are?"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from webapp.judging.audit import Case, CaseProblem, measures, parse_case

from .. import report as r
from .base import Context, Found, NothingToScore, Outcome, Recipe, RecipeConfig, tag

OVERALL = "overall"
WORDS = {-1: "A", 0: "tie", 1: "B", None: None}
MEASURES = (
    ("accuracy_net", "Accuracy", "right on balance over both orders; a missing verdict is wrong"),
    ("accuracy_given", "As given", "right with the responses in their given order"),
    ("accuracy_swapped", "Swapped", "right with the responses swapped"),
    ("accuracy_both", "Both orders", "right in both orders"),
    ("order_consistency", "Consistent", "verdicts of both orders that agree after un-swapping"),
    ("first_position_share", "First place", "share of decided verdicts for the response shown first; 50% is unbiased"),
    ("kappa_orders", "Kappa", "Cohen's kappa between the two orders"),
)


class JudgeChoice(Section):
    version: int = knob(..., "A pairwise judge, at one of its versions", source="judges:pairwise,pairwise_rubric", ge=1)


class JudgeAuditConfig(RecipeConfig):
    """Which judges to audit. Recorded verdicts are chosen beside the dataset; judges chosen here are asked."""

    judges: list[JudgeChoice] = knob([], "Judges to ask about the pairs of the dataset", max_length=8)
    max_pairs: int | None = knob(None, "Only the first pairs of the dataset; empty: all", unit="pairs", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        seen: set[int] = set()
        for i, each in enumerate(self.judges):
            if each.version in seen:
                yield FieldProblem(f"judges.{i}.version", "is listed twice")
            seen.add(each.version)


@dataclass
class Audited:
    """One pair judged by one judge, with where its verdicts can be read."""

    case: Case
    example: str = ""
    a: str = ""
    b: str = ""
    verdicts: list[int] = field(default_factory=list)
    version: int | None = None
    judge: int | None = None


def run(context: Context) -> Outcome:
    audited = list(recorded(context))
    if not audited:
        raise NothingToScore("no pair has a label that a verdict could be compared with")
    by_judge: dict[str, list[Audited]] = defaultdict(list)
    for each in audited:
        by_judge[each.case.judge].append(each)
    measured = {judge: measures([each.case for each in rows]) for judge, rows in by_judge.items()}
    best = max(measured, key=lambda judge: measured[judge]["accuracy_net"].get("value") or 0.0)
    found = r.Report(
        headline=r.headline(f"Accuracy of {best}", _cell(measured[best]["accuracy_net"], best, "accuracy_net")),
        coverage=_coverage(audited),
        blocks=[_judges(measured), *_groups(by_judge)],
        entries=[
            r.Entry(
                judge, _cell(measured[judge]["accuracy_net"], judge, "accuracy_net"), rows[0].version, rows[0].judge
            )
            for judge, rows in by_judge.items()
        ],
    )
    return Outcome(found, [_case(each) for each in audited])


def recorded(context: Context) -> Iterator[Audited]:
    """The lines of the recording; a line that cannot be used was refused when it was sent in."""
    seen: set[tuple[str, str]] = set()
    for line in context.lines():
        case = parse_case(line)
        if (case.judge, case.pair) in seen:
            raise CaseProblem(f"judge {case.judge!r} judged pair {case.pair!r} twice")
        seen.add((case.judge, case.pair))
        yield Audited(case, example=case.pair)


def _coverage(audited: list[Audited]) -> list[tuple[str, r.Cell]]:
    pairs = len({each.case.pair for each in audited})
    verdicts = sum((each.case.given is not None) + (each.case.swapped is not None) for each in audited)
    missing = 2 * len(audited) - verdicts
    return [
        ("Judges", r.count(len({each.case.judge for each in audited}))),
        ("Pairs", r.count(pairs)),
        ("Cases", r.count(len(audited))),
        ("Verdicts", r.count(verdicts)),
        ("Missing", r.count(missing, "missing", tone="warn" if missing else "")),
    ]


TAGS_OF = {"order_consistency": ("inconsistent",), "accuracy_net": ("wrong",)}


def _cell(found: dict[str, Any], judge: str, measure: str, *more: str) -> r.Cell:
    unit: r.Unit = "points" if measure == "kappa_orders" else "share"
    return r.estimate(found, tag("judge", judge), *more, *TAGS_OF.get(measure, ()), unit=unit)


def _judges(measured: dict[str, dict[str, Any]]) -> r.Table:
    rows = []
    for judge in sorted(measured):
        row = measured[judge]
        missing = row["missing"]
        rows.append(
            [
                r.text(judge, tag("judge", judge)),
                r.count(row["n"], tag("judge", judge)),
                *[_cell(row[name], judge, name) for name, _, _ in MEASURES],
                r.count(missing["given"], tag("judge", judge), "missing:given"),
                r.count(missing["swapped"], tag("judge", judge), "missing:swapped"),
            ]
        )
    columns = [("Judge", ""), ("Pairs", ""), *[(words, help) for _, words, help in MEASURES]]
    columns += [("No verdict", "pairs without a verdict in the given order"), ("None swapped", "in the swapped order")]
    note = (
        "A number leads to the cases behind it: accuracy to those the judge got wrong, consistency to those it changed."
    )
    return r.Table("Right, and whichever comes first", columns, rows, note)


def _groups(by_judge: dict[str, list[Audited]]) -> Iterator[r.Table]:
    groups = sorted({each.case.group for rows in by_judge.values() for each in rows} - {""})
    if len(groups) < 2:
        return
    rows = []
    for judge in sorted(by_judge):
        cells = [r.text(judge, tag("judge", judge))]
        for group in groups:
            cases = [each.case for each in by_judge[judge] if each.case.group == group]
            found = measures(cases)["accuracy_net"] if cases else {"undefined": "no cases"}
            cells.append(_cell(found, judge, "accuracy_net", tag("group", group)))
        rows.append(cells)
    yield r.table("Accuracy by group", ["Judge", *groups], rows)


def _case(each: Audited) -> Found:
    case = each.case
    swapped = None if case.swapped is None else -case.swapped
    votes = sum(1 - abs(verdict - case.label) for verdict in (case.given, swapped) if verdict is not None)
    tags = [tag("judge", case.judge), "right" if votes > 0 else "wrong"]
    tags += [tag("group", case.group)] if case.group else []
    for name, verdict in (("given", case.given), ("swapped", swapped)):
        outcome = "missing" if verdict is None else "right" if verdict == case.label else "wrong"
        tags.append(f"{outcome}:{name}")
    if case.given is None or swapped is None:
        tags.append("missing")
    else:
        tags.append("consistent" if case.given == swapped else "inconsistent")
    subject = {
        "judge": case.judge,
        "pair": case.pair,
        "group": case.group,
        "example": each.example,
        "a": each.a,
        "b": each.b,
    }
    values = {
        "label": WORDS[case.label],
        "given": WORDS[case.given],
        "swapped": WORDS[swapped],
        "votes": votes,
        "verdicts": each.verdicts,
    }
    return Found({key: value for key, value in subject.items() if value}, values, tags)


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
)
