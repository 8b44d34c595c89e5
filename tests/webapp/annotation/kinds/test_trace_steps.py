"""Steps of a trace: the steps that are judged, the rules for an answer, and the first error by several people."""

from typing import Any

import pytest

from tests.team import browser
from webapp.annotation.agreement import coefficients, person_figures, refresh
from webapp.annotation.kinds import Settings
from webapp.annotation.kinds.table import GivenAnswer, Undecided
from webapp.annotation.kinds.trace_steps import KIND
from webapp.annotation.publishing import services as publish
from webapp.annotation.tasks import answer_checks
from webapp.core.problems import Invalid

from ..answers import annotators, answer, make_project, trace_steps

STEPS = [
    {"kind": "reasoning", "text": "Look it up."},
    {"kind": "call", "tool": "search", "text": "{}"},
    {"kind": "result", "role": "tool", "tool": "search", "text": "nothing", "failed": True},
    {"text": "Nobody knows."},
    {"role": "user", "text": "Are you sure?"},
    {"text": "Yes."},
]
EXAMPLE = {"responses": [{"id": "r1", "text": "x", "steps": STEPS}, {"id": "r2", "text": "y"}]}
SUBJECT = {"response": "r1"}
VIEW: dict[str, Any] = {"responses": [{"letter": "A", "text": "x"}], "material": KIND.material(SUBJECT, EXAMPLE)}
GOOD, WRONG, UNSURE = "correct", "incorrect", "cannot_assess"


def checked(content):
    return answer_checks.answer("trace_steps", Settings(), content, VIEW)


def refused(content) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        checked(content)
    return error.value.fields


def test_each_trace_is_a_task_and_what_tools_and_people_say_is_not_judged():
    assert KIND.subjects(EXAMPLE) == [SUBJECT]
    assert KIND.subjects({"responses": [{"id": "r", "text": "", "steps": STEPS[2:3]}]}) == []
    told = VIEW["material"]["steps"]
    assert [step["number"] for step in told if step["judged"]] == [1, 2, 4, 6]
    assert (told[2]["title"], told[2]["failed"]) == ("error of search", True)


def test_a_verdict_is_needed_up_to_the_first_error_and_no_further():
    whole = trace_steps(GOOD, GOOD, None, GOOD, None, UNSURE)
    assert checked(whole) == whole
    early = trace_steps(GOOD, WRONG)
    assert checked(early) == early
    assert checked({**early, "steps": [*early["steps"], {"step": 6, "verdict": GOOD}]})["first_error"] == 2
    assert refused(trace_steps(GOOD, GOOD)) == {"content.steps": "every step needs a verdict; missing: 4, 6"}
    late = trace_steps(GOOD, None, None, WRONG)
    assert refused(late) == {"content.steps": "every step up to the first error needs a verdict; missing: 2"}


def test_the_first_error_is_the_first_step_that_is_wrong():
    early = trace_steps(GOOD, WRONG)
    assert refused({**early, "first_error": None})["content.first_error"].startswith("is step 2")
    assert refused({**early, "first_error": 1})["content.first_error"].startswith("is step 2")
    assert "content.first_error" in refused({**trace_steps(GOOD, GOOD, None, GOOD, None, GOOD), "first_error": 6})


def test_a_step_that_is_not_the_agents_or_judged_twice_is_refused_at_its_place():
    given = trace_steps(GOOD, WRONG, GOOD)
    assert refused(given) == {"content.steps.2.step": "names step 3, which is not a step of the agent"}
    given["steps"][2]["step"] = 1
    assert refused(given) == {"content.steps.2.step": "is judged twice"}


def test_who_goes_on_beyond_the_first_error_says_the_same():
    short, long = trace_steps(GOOD, WRONG), trace_steps(GOOD, WRONG, None, GOOD)
    assert KIND.judgement(short) == KIND.judgement(long)
    assert KIND.distance(short, long) == 0


def test_distance_by_hand():
    """Two people judged the same steps up to step 4. One of the verdicts is different, and so is the first error."""
    assert KIND.distance(trace_steps(GOOD, WRONG), trace_steps(GOOD, GOOD, None, WRONG)) == (1 / 2 + 1) / 2
    assert KIND.distance(trace_steps(GOOD, GOOD), trace_steps(GOOD, UNSURE)) == (1 / 2 + 0) / 2


def test_the_majority_has_the_first_error_of_more_than_half_with_its_reason():
    answers = [trace_steps(GOOD, WRONG), trace_steps(GOOD, WRONG, None, GOOD), trace_steps(GOOD, GOOD, None, GOOD)]
    answers[1]["steps"][1]["reason"] = "No city."
    found = KIND.majority(answers, [])
    assert (found["first_error"], found["steps"][1]["reason"]) == (2, "No city.")
    assert [step["step"] for step in found["steps"]] == [1, 2, 4]
    assert KIND.majority([trace_steps(WRONG), trace_steps(GOOD, WRONG), trace_steps(GOOD, GOOD)], []) is None
    assert KIND.majority([trace_steps(GOOD, WRONG), trace_steps(UNSURE, WRONG)], []) is None


def test_a_reviewer_decides_each_step_and_the_first_error_follows():
    answers = [GivenAnswer(1, trace_steps(GOOD, WRONG)), GivenAnswer(2, trace_steps(GOOD, GOOD, None, WRONG))]
    rows = KIND.rows(Settings(), SUBJECT, EXAMPLE, answers, None)
    assert [row.id for row in rows] == ["step:1", "step:2", "step:4", "step:6"]
    assert rows[1].label == "2 calls search: {}" and rows[3].given == {1: "none", 2: "none"}
    values = {"step:1": GOOD, "step:2": GOOD, "step:4": WRONG, "step:6": "none"}
    assert KIND.assemble(values, [], SUBJECT, answers)["first_error"] == 4
    with pytest.raises(Undecided, match="needs a verdict"):
        KIND.assemble({**values, "step:4": GOOD}, [], SUBJECT, answers)


def test_a_known_answer_is_met_by_its_first_error_and_its_verdicts_up_to_it():
    known = KIND.bare(trace_steps(GOOD, WRONG))
    assert KIND.right(Settings(), trace_steps(GOOD, WRONG, None, GOOD), known)
    assert not KIND.right(Settings(), trace_steps(UNSURE, WRONG), known)
    assert not KIND.right(Settings(), trace_steps(GOOD, GOOD, None, WRONG), known)


def test_what_is_published_counts_who_found_which_first_error():
    given = [
        (SUBJECT, trace_steps(GOOD, WRONG)),
        (SUBJECT, trace_steps(GOOD, GOOD)),
        (SUBJECT, trace_steps(GOOD, WRONG)),
    ]
    assert KIND.summary(given) == {"first_errors": {"r1": {"2": 2, "none": 1}}}
    assert KIND.note(trace_steps(GOOD, WRONG), "answers") == {
        "steps": {"1": "correct", "2": "incorrect"},
        "first_error": 2,
    }


@pytest.mark.django_db
def test_two_people_from_the_database_to_agreement_review_and_a_published_version(team):
    """Both people agree on one trace. In another trace their first errors are one step apart."""
    made = make_project(team, "trace_steps", n=2, responses=EXAMPLE["responses"])
    made.tasks.update(subject=SUBJECT)
    one, two = annotators(team, made)
    first, second = made.tasks.order_by("rank")
    for person in (one, two):
        answer(first, person, trace_steps(GOOD, WRONG))
    answer(second, one, trace_steps(GOOD, WRONG))
    answer(second, two, trace_steps(GOOD, GOOD, None, WRONG))
    refresh.bring_up_to_date(made)

    verdicts, errors = coefficients.measure(made)["fields"]
    assert (verdicts["percent"]["value"], verdicts["units"]) == (0.75, 4)  # three of the four steps that both judged
    assert (errors["percent"]["value"], errors["units"]) == (0.5, 2)
    assert person_figures.measure(made)

    assert browser(team.reviewer).get(f"/projects/{made.pk}/review/{second.pk}").status_code == 200
    assert browser(team.reviewer).get(f"/projects/{made.pk}/agreement").status_code == 200
    assert b"Calls search" in browser(team.reviewer).get(f"/projects/{made.pk}/tasks/{second.pk}").content

    version = publish.publish(team.researcher, made, publish.Choice(what="answers")).version
    rows = [member.example.content for member in version.members.select_related("example").order_by("position")]
    notes = [row["meta"]["annotation"][str(made.pk)] for row in rows]
    assert [note["first_errors"] for note in notes] == [{"r1": {"2": 2}}, {"r1": {"2": 1, "4": 1}}]
    assert rows[0]["responses"][0]["steps"][1] == {"kind": "call", "tool": "search", "text": "{}"}
