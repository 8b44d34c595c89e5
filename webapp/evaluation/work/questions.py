"""The results of the questions that an evaluation asked: every answer that is missing is counted under its reason."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from trainer.judges.injection import LANGUAGES, speaks_to_judge
from trainer.judges.inputs import JudgeInput

from .. import report as r
from ..recipes.base import FoundCase, JudgedQuestion, tag

MOST_REASONS = 12  # of one judge
SPEAKS = "speaks to the judge"
UNASKED = "could not be asked"
NOTE = (
    "Covers every question behind these numbers, asked now or found in the store. A question without an answer is missing, "
    f"never false. Responses were searched for orders to the judge in {', '.join(LANGUAGES[:-1])} and {LANGUAGES[-1]}, and "
    "for the markup of prompts; an order in another language or a hidden one is not found."
)
WORDS = {
    "done": "answered",
    "missing": "answered, but unusable after its retries",
    "failed": "no answer from the endpoint",
    "uncalled": "not asked",
}


class Questions:
    """Collects while an evaluation asks. A question that comes again, in another phase, counts once."""

    def __init__(self) -> None:
        self.unusable: Counter[tuple[str, str]] = Counter()
        self._answers: dict[str, dict[tuple[int, str], tuple[str, str]]] = {}
        self._href: dict[str, str] = {}
        self._speaking: set[str] = set()
        self._unasked: dict[str, set[str]] = defaultdict(set)  # by judge

    def asked(
        self, judge: str, href: str, inputs: Sequence[JudgeInput], answers: Iterable[JudgedQuestion], phase: str
    ) -> None:
        """`href`: the address of all answers of the judge, by state."""
        self._href[judge] = href
        mine = self._answers.setdefault(judge, {})
        for place, each in enumerate(answers):
            key = (each.id, "") if each.id else (place, phase)
            mine[key] = (each.state, "" if each.parsed is not None else each.problem)
        for given in inputs:
            if any(map(speaks_to_judge, given.responses.values())):
                self._speaking.add(given.example)

    def could_not(self, judge: str, why: Counter[str], examples: Iterable[str]) -> None:
        """Inputs that lack what the judge needs, by reason, and what they are about."""
        for reason, count in why.items():
            self.unusable[judge, reason] += count
        self._unasked[judge].update(examples)

    def note(self, report: r.Report, cases: Sequence[FoundCase]) -> None:
        """Adds the table to a report whose evaluation asked anything, and a tag to the cases whose text gives orders."""
        speaking = [case for case in cases if case.subject.get("example") in self._speaking]
        for case in speaking:
            case.tags.append(SPEAKS)
        if speaking:
            report.coverage.append(
                ("With a text that gives the judge orders", r.count(len(speaking), SPEAKS, tone="warn"))
            )
        for judge, examples in self._unasked.items():
            for case in cases:
                if case.subject.get("example") in examples and case.subject.get("judge", judge) == judge:
                    case.tags.append(tag(UNASKED, judge))
        rows = [row for judge in sorted(self._answers) for row in self._rows(judge)]
        rows += [
            [r.text(judge), r.text(UNASKED), r.count(count, tag(UNASKED, judge), tone="warn"), r.text(why)]
            for (judge, why), count in sorted(self.unusable.items())
        ]
        if rows:
            columns = ["Judge", "State", "Questions", "Reason"]
            report.blocks.append(r.table("Outcome of the questions", columns, rows, NOTE))

    def _rows(self, judge: str) -> list[list[r.Cell]]:
        counts = Counter(self._answers[judge].values())
        order = sorted(counts, key=lambda key: (list(WORDS).index(key[0]), -counts[key], key[1]))
        rows = []
        for state, why in order[:MOST_REASONS]:
            tone = "" if state == "done" else "warn"
            said = "" if state == "uncalled" else f"{self._href[judge]}?state={state}"
            number = r.number(counts[state, why], "count", href=said, tone=tone)
            rows.append([r.text(judge, href=self._href[judge]), r.text(WORDS[state]), number, r.text(why)])
        if rest := order[MOST_REASONS:]:
            count = sum(counts[key] for key in rest)
            rows.append([r.text(judge), r.text("for other reasons"), r.number(count, "count", tone="warn"), r.text("")])
        return rows
