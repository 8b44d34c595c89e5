"""People's grades of single criteria of an example's responses."""

from dataclasses import dataclass

from trainer.contracts import Criterion, Example, Response
from trainer.contracts.human_grades import human_grades
from trainer.judges.combine import majority


@dataclass(frozen=True)
class Graded:
    """One criterion of one response with each rater's verdict. `met` None: they are evenly split."""

    example: Example
    response: Response
    criterion: Criterion
    raters: dict[str, bool]

    @property
    def met(self) -> bool | None:
        return majority(list(self.raters.values())).value


def graded(example: Example) -> list[Graded]:
    """Grades in the order of responses and criteria; those that nobody decided are left out.

    Grades are what annotation publishes under `meta.annotation`, and what graded imports keep in `meta.verdicts`. A grade of a response or
    criterion that the example no longer has is left out.
    """
    raters: dict[tuple[str, str], dict[str, bool]] = {}
    for rater, response, criterion, met in human_grades(example.meta):
        raters.setdefault((response, criterion), {})[rater] = met
    criteria = example.rubric.criteria if example.rubric else ()
    return [
        Graded(example, response, criterion, raters[response.id, criterion.id])
        for response in example.responses
        for criterion in criteria
        if (response.id, criterion.id) in raters
    ]
