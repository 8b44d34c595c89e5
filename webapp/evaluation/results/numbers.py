"""The results of an evaluation as data: each number by itself, with its subject, its n, its interval and the number of missing cases.

A report (`report.py`) is laid out for a page; here the cells of its blocks are read into rows of one shape, in sections that each recipe
declares. A block of an older version's evaluation that fits no section is in `other`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union
from unicodedata import normalize

from ninja import Schema
from pydantic import Field, create_model

from webapp.core.text import spreadsheets

from ..models import Evaluation
from ..report import Unit

OTHER = "other"


class Measured(Schema):
    """One number. `subject`: the judge, model, condition or criterion that it is about; `group`: the part of the data that it
    is of, null for all of it; `beside`: what `subject` is compared with; `x`: the place on a curve. A `value` that does not
    exist is null, and `why` says why. `low` and `high` are the ends of the 95% interval, null if there is none; `interval`
    says how it was made, or why there is none. `n` counts the cases behind it, `missing` those that should be and are not.
    `text` stands where words were found and no number. `cases`: the tags of the cases behind it (`…/cases?tag=`)."""

    subject: str | None = None
    group: str | None = None
    beside: str | None = None
    measure: str
    x: float | None = None
    unit: Unit | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    n: int | None = None
    missing: int | None = None
    why: str = ""
    text: str | None = None
    cases: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class ReportSection:
    """`title`: of the block; `{}` in it is a name, which is the `named` of its numbers. `across`: what is measured where the
    columns name subjects and the rows groups; otherwise the rows name what `rows` says, and the columns name measures. `measures`: titles
    of columns that are measures all the same. `groups`: the title of a column whose words are the group of its row. `former`: the title that
    an older version has stored."""

    name: str
    title: str
    across: str = ""
    rows: Literal["subject", "group"] = "subject"
    named: Literal["subject", "beside"] = "beside"
    measures: tuple[str, ...] = ()
    groups: str = ""
    former: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        titles = [re.escape(each).replace(r"\{\}", "(.*)") for each in (self.title, self.former) if each]
        return re.compile("|".join(titles), re.DOTALL)


ASKING = (
    ReportSection("spending", "Cost and latency"),
    ReportSection("questions", "Outcome of the questions", groups="State", former="What became of the questions"),
)
PROMPTS = ReportSection("prompts", "Outcome of the prompts", former="What became of the prompts")
PEOPLE = (
    ReportSection("human_range", "As good as people are?"),
    ReportSection("raters", "Each person with the others", across="agreement", rows="group"),
)
AGAINST_BEST = ReportSection("against_best", "Against {}")
SEVERAL = (
    ReportSection("avg_at_k", "Avg@k"),
    ReportSection("pass_at_k", "pass@k"),
    ReportSection("best_of_n", "Best of N"),
    ReportSection("rejection", "Rejection sampling"),
    ReportSection("rejection_of_n", "Rejection sampling of N"),
)
RESPONSES = (
    ReportSection("scores", "Rubric scores"),
    ReportSection("corrected", "Corrected by people"),
    ReportSection("by_split", "Held out and training", across="clipped", rows="group"),
    ReportSection("by_domain", "By domain", across="clipped", rows="group"),
    ReportSection("by_axis", "By axis", across="clipped", rows="group"),
    ReportSection("by_criterion", "By criterion", across="met", rows="group", measures=("Points",)),
    *SEVERAL,
    ReportSection("variety", "Variety and novelty"),
    ReportSection("wins", "Who wins"),
    ReportSection("changed_most", "Changed most", across="clipped", rows="group", measures=("Change",)),
    *ASKING,
)
SECTIONS: dict[str, tuple[ReportSection, ...]] = {
    "judge_audit": (
        ReportSection("judges", "Right, and whichever comes first"),
        ReportSection("by_group", "Accuracy by group", across="accuracy", rows="group"),
        AGAINST_BEST,
        *PEOPLE,
        ReportSection("by_length", "Accuracy by length"),
        ReportSection("by_format", "Accuracy by format"),
        ReportSection("voting", "Voting"),
        ReportSection("calibration", "Calibration"),
        ReportSection("calibration_error", "Calibration error"),
        *ASKING,
    ),
    "reward_benchmark": (
        ReportSection("rm_bench", "RM-Bench"),
        ReportSection("styles", "Styles: {}", rows="group", named="subject"),
        ReportSection("best_of_list", "Best of a list"),
        ReportSection("ties", "Ties"),
        *ASKING,
    ),
    "criterion_audit": (
        ReportSection("judges", "Judges against people"),
        ReportSection("confusion", "Where they part"),
        ReportSection("by_criterion", "By criterion: {}", rows="group", named="subject"),
        *(
            ReportSection(f"by_{kind}", f"Agreement by {kind}", across="agreement", rows="group")
            for kind in ("importance", "kind", "axis", "domain")
        ),
        AGAINST_BEST,
        *PEOPLE,
        *ASKING,
    ),
    "rubricbench": (
        ReportSection("conditions", "Three conditions"),
        ReportSection("by_domain", "Accuracy by domain", across="accuracy", rows="group"),
        ReportSection("alignment", "Own rubrics against human ones"),
        ReportSection("faults", "Where it goes wrong"),
        ReportSection("necessity", "Necessity and rigidity"),
        ReportSection("by_items", "Accuracy by number of items"),
        ReportSection("by_rubrics", "Accuracy by number of rubrics"),
        ReportSection("by_rounds", "Accuracy by rounds of refinement"),
        *ASKING,
    ),
    "study": (
        ReportSection("arms", "People with either rubric"),
        ReportSection("by_domain", "Accuracy by domain", across="accuracy", rows="group", measures=("Difference",)),
        ReportSection("people", "Each person in either arm", across="accuracy", rows="group"),
    ),
    "metajudge": (
        ReportSection("judges", "Right, and for the right reasons"),
        ReportSection("reasons_and_verdicts", "Reasons against verdicts"),
        ReportSection("second_matcher", "Would another matcher say the same?"),
        ReportSection("reasons_rest_on", "Basis of the reasons", former="What reasons rest on"),
        ReportSection("flaws", "Flaws of reasons"),
        *ASKING,
    ),
    "policy": RESPONSES,
    "generate": (*RESPONSES, PROMPTS),
    "pass_rate": (
        ReportSection("map", "Map of the data"),
        ReportSection("by_pass_rate", "Prompts by pass rate", across="prompts", rows="group"),
        ReportSection("by_domain", "Learnable by domain", across="learnable", rows="group"),
        *SEVERAL,
        PROMPTS,
        *ASKING,
    ),
    "rubric_audit": (
        ReportSection("discrimination", "Do criteria tell responses apart?"),
        ReportSection("wording", "Wording of the criteria", former="How criteria read"),
        ReportSection("related", "Redundant and in conflict"),
        ReportSection(
            "weights", "Effect of one criterion on the score", former="How much the score hangs on a criterion"
        ),
        ReportSection("coverage_of_instruction", "Coverage of the instruction"),
        ReportSection("quality", "Quality of the rubrics", former="How good the rubrics are"),
        ReportSection("ranking", "Do scores rank answers as people did?"),
        *ASKING,
    ),
    "grade_or_compare": (
        ReportSection("scores", "Grades, comparisons and both"),
        ReportSection("next", "Data to collect next", former="What to collect next"),
        ReportSection("weights", "Criterion weights"),
    ),
}


def _schema(recipe: str, sections: tuple[ReportSection, ...]) -> Any:
    rows: dict[str, Any] = {each.name: (list[Measured], Field(default_factory=list)) for each in sections}
    named: Any = {
        "recipe": (Literal[recipe], ...),
        "headline": (Measured, ...),
        "coverage": (
            list[Measured],
            Field(description="The cases from which the numbers are computed, and those that are missing"),
        ),
        **rows,
        OTHER: (list[Measured], Field(description="Results of older versions, in blocks that no section has")),
        "notes": (list[str], ...),
    }
    return create_model("".join(map(str.capitalize, recipe.split("_"))) + "Results", __base__=Schema, **named)


SCHEMAS: dict[str, Any] = {recipe: _schema(recipe, sections) for recipe, sections in SECTIONS.items()}
ResultsOut: Any = Annotated[Union[tuple(SCHEMAS.values())], Field(discriminator="recipe")]  # noqa: UP007


def numbers_of(row: Evaluation) -> dict[str, Any]:
    """The results of an evaluation, in the schema of its recipe."""
    found: dict[str, Any] = row.results or {}
    made: dict[str, Any] = {each.name: [] for each in SECTIONS[row.recipe]}
    made |= {"recipe": row.recipe, "notes": found.get("notes", []), OTHER: []}
    made["headline"] = _measured(found["headline"]["cell"], measure="headline", text=found["headline"]["label"])
    made["coverage"] = [_measured(cell, measure=_id(words)) for words, cell in found.get("coverage", [])]
    for block in found.get("blocks", []):
        section, name = _section(row.recipe, block["title"])
        made[section.name] += _READ[block["kind"]](block, section, name)
    return made


def as_csv(row: Evaluation) -> str:
    """A line for each number, its section first. Text that a spreadsheet would run begins with an apostrophe."""
    columns = [name for name in Measured.model_fields if name != "cases"]
    found = numbers_of(row)
    sections = {"headline": [found["headline"]]} | {
        name: rows for name, rows in found.items() if isinstance(rows, list) and name != "notes"
    }
    lines = ([name, *(each.get(column) for column in columns)] for name, rows in sections.items() for each in rows)
    return spreadsheets.lines([["section", *columns], *lines])


def _section(recipe: str, title: str) -> tuple[ReportSection, str]:
    """The section of a block, and the name in its title."""
    for each in SECTIONS[recipe]:
        if found := each.pattern.fullmatch(title):
            return each, found.group(1) if found.groups() else ""
    return ReportSection(OTHER, title), ""


def _table(block: dict[str, Any], section: ReportSection, name: str) -> Iterator[dict[str, Any]]:
    titles = [words for words, _ in block["columns"]]
    for first, *cells in block["rows"]:
        row = [(title, cell) for title, cell in zip(titles[1:], cells, strict=True) if cell.get("text") != ""]
        about: dict[str, Any] = {section.named: name} if name else {}
        about |= {section.rows: first.get("text")}
        if section.name == OTHER:
            about["beside"] = block["title"]
        if section.groups:
            about["group"] = next(cell["text"] for title, cell in row if title == section.groups)
            row = [(title, cell) for title, cell in row if title != section.groups]
        for title, cell in row:
            if section.across and title not in section.measures:
                yield _measured(cell, **about | {"subject": title, "measure": section.across})
            else:
                yield _measured(cell, **about, measure=_id(title.replace(name, "best") if name else title))


def _curve(block: dict[str, Any], section: ReportSection, name: str) -> Iterator[dict[str, Any]]:
    for series in block["series"]:
        for point in series["points"]:
            cell = {"kind": "estimate", "unit": "share", **point}
            yield _measured(cell, subject=series["name"], measure=_id(block["y"]), x=point["x"])


def _scatter(block: dict[str, Any], section: ReportSection, name: str) -> Iterator[dict[str, Any]]:
    for point in block["points"]:
        for axis in ("x", "y"):
            yield _measured(point[axis], subject=point["name"], measure=_id(block[axis]))


_READ = {"table": _table, "curve": _curve, "scatter": _scatter}


def _measured(cell: dict[str, Any], **about: Any) -> dict[str, Any]:
    """A cell of a report as the fields of `Measured`."""
    found = {name: cell.get(name) for name in ("unit", "value", "low", "high", "n", "missing", "text")}
    found["unit"] = "count" if cell["kind"] == "count" else found["unit"]
    return {
        **found,
        **about,
        "interval": cell.get("interval") or "",
        "why": cell.get("undefined") or "",
        "cases": cell.get("tags", []),
    }


def _id(title: str) -> str:
    """`Accuracy, both orders` is accuracy_both_orders; what follows a dot in the middle is not part of the name."""
    plain = normalize("NFKC", title.partition(" · ")[0]).lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
