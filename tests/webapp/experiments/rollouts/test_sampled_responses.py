"""The samples of runs, as evaluations read them."""

import json

import pytest

from trainer.__main__ import COMMANDS
from trainer.contracts import CriterionResult, RolloutRecord, Verdict
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.recipes.base import NotMeasured
from webapp.evaluation.sources.registry import SOURCES
from webapp.evaluation.work import running
from webapp.experiments.models import Rollout
from webapp.experiments.rollouts import sampled_responses

pytestmark = pytest.mark.django_db


def add(run, step: int, index: int, met: bool, phase: str = "eval") -> None:
    verdict = Verdict(criterion_id="c1", met=met)
    record = RolloutRecord(
        phase=phase,
        example_key="e3",
        group=0,
        index=index,
        prompt="user: ?",
        response=f"answer {index} of step {step}",
        finish_reason="stop",
        criteria=(CriterionResult(text="Names a colour", points=3, kind="hard", verdict=verdict),),
    )
    Rollout.objects.create(
        run=run, step=step, phase=phase, group=0, index=index, example_key="e3", content=record.model_dump(mode="json")
    )


def test_the_newest_evaluation_unless_a_step_is_named(team, run):
    add(run, 0, 0, met=False)
    add(run, 4, 0, met=True)
    add(run, 5, 0, met=True, phase="train")
    newest = list(sampled_responses.responses(team.workspace.pk, run.pk, None))
    assert [each.text for each in newest] == ["answer 0 of step 4"]
    assert [each.text for each in sampled_responses.responses(team.workspace.pk, run.pk, 0)] == ["answer 0 of step 0"]
    assert list(sampled_responses.responses(team.outsider.workspace.pk, run.pk, None)) == []


def test_what_a_run_learnt_from_since_the_evaluation_before(team, run):
    for step in (0, 4, 8):
        add(run, step, 0, met=True)
    for step in range(1, 9):
        add(run, step, 0, met=True, phase="train")

    def texts(step):
        return [each.text for each in sampled_responses.trained(team.workspace.pk, run.pk, step)]

    assert texts(4) == [f"answer 0 of step {step}" for step in (4, 3, 2, 1)]
    assert texts(None) == [f"answer 0 of step {step}" for step in (8, 7, 6, 5)] and texts(0) == []
    assert list(sampled_responses.trained(team.outsider.workspace.pk, run.pk, None)) == []


def test_only_runs_with_evaluations_of_this_workspace_are_offered(team, run):
    source = SOURCES["runs"]
    assert source.options(team.workspace.pk, "") == []
    assert "sampled nothing" in source.problem(team.workspace.pk, "", run.pk)
    add(run, 4, 0, met=True)
    assert [value for value, _ in source.options(team.workspace.pk, "")] == [str(run.pk)]
    assert source.problem(team.workspace.pk, "", run.pk) == ""
    assert source.problem(team.outsider.workspace.pk, "", run.pk) == "this workspace has no such run"


def compared(team, run, *, wrong: tuple[int, ...]) -> Evaluation:
    """A finished evaluation of two steps of a run, with two responses each. `wrong` responses of the first step do not meet the criterion."""
    for index in range(2):
        add(run, 0, index, met=index not in wrong)
        add(run, 4, index, met=True)
    config = {"responses": [{"run": run.pk, "step": 0}, {"run": run.pk, "step": 4}]}
    row = services.create(team.researcher, recipe="policy", config=config)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == "finished", row.problem
    return row


def test_two_checkpoints_of_one_run_side_by_side(team, run, as_researcher, settings):
    answers = "import sys, json; print('{}', *(json.dumps({'id': json.loads(line)['id'], 'diversity': 0.375}) for line in sys.stdin), sep='\\n')"
    settings.DIVERSITY_COMMAND = ["python3", "-c", answers]
    row = compared(team, run, wrong=(1,))
    assert row.results["headline"]["cell"]["value"] == 1.0
    assert '"value": 0.375' in json.dumps(row.results)
    page = as_researcher.get(f"/evaluations/{row.pk}").content.decode()
    assert "Changed most" in page and "50.0%" in page
    case = as_researcher.get(f"/evaluations/{row.pk}/cases/1").content.decode()
    assert "answer 0 of step 0" in case and "Names a colour" in case


@pytest.mark.parametrize("name", ["DIVERSITY_COMMAND", "NOVELTY_COMMAND", "MATCH_COMMAND", "JUDGE_COMMAND"])
def test_what_workers_start_is_a_command_of_the_trainer(settings, name):
    _, *start, command = getattr(settings, name)
    assert start == ["-m", "trainer"] and command in COMMANDS


def test_novelty_is_measured_beside_with_the_checkpoint_of_the_step(team, run, settings, tmp_path):
    for index in range(2):
        add(run, 0, index, met=True)
        add(run, 4, index, met=True)
    settings.VAR = tmp_path
    assert sampled_responses.novelty(team.workspace.pk, run.pk, 0) == [1.0, 1.0]
    with pytest.raises(NotMeasured, match="no checkpoint of step 4"):
        sampled_responses.novelty(team.workspace.pk, run.pk, None)
    (tmp_path / "runs" / str(run.pk) / "checkpoints" / "step-000004").mkdir(parents=True)
    script = "import sys, json; head, *rows = map(json.loads, sys.stdin); print(*(json.dumps({'id': r['id'], 'novelty': len(head['checkpoint'][-6:]) + r['id']}) for r in rows), sep='\\n')"
    settings.NOVELTY_COMMAND = ["python3", "-c", script]
    assert sampled_responses.novelty(team.workspace.pk, run.pk, None) == [6, 7]
    settings.NOVELTY_COMMAND = ["python3", "-c", "import sys; sys.exit('the weights do not fit')"]
    with pytest.raises(NotMeasured, match="the weights do not fit"):
        sampled_responses.novelty(team.workspace.pk, run.pk, None)


def test_what_two_checkpoints_said_stands_side_by_side(team, run, as_researcher, settings):
    settings.DIVERSITY_COMMAND = ["false"]
    row = compared(team, run, wrong=(0, 1))
    result = as_researcher.get(f"/evaluations/{row.pk}").content.decode()
    assert f"/evaluations/{row.pk}/compare?example=e3" in result and "failed" in result
    page = as_researcher.get(f"/evaluations/{row.pk}/compare?example=e3").content.decode()
    assert "answer 1 of step 0" in page and "answer 1 of step 4" in page and "Names a colour" in page
    assert as_researcher.get(f"/evaluations/{row.pk}/compare?example=none").status_code == 404


@pytest.mark.parametrize(
    ("met", "points", "tone"),
    [
        ("met", 3.0, "good"),
        ("not met", 3.0, "bad"),
        ("met", -3.0, "bad"),
        ("not met", -3.0, "good"),
        ("undecided", -3.0, "warn"),
    ],
)
def test_a_verdict_on_a_fault_is_good_if_the_response_lacks_the_fault(
    team, run, as_researcher, settings, met, points, tone
):
    settings.DIVERSITY_COMMAND = ["false"]
    row = compared(team, run, wrong=(0, 1))
    case = row.cases.filter(subject__example="e3").earliest("number")
    case.values["criteria"][0] |= {"met": met, "points": points}
    case.save(update_fields=["values"])
    beside = as_researcher.get(f"/evaluations/{row.pk}/compare?example=e3").content.decode()
    assert f'data-tone="{tone}">{met}' in beside
    alone = as_researcher.get(f"/evaluations/{row.pk}/cases/{case.number}").content.decode()
    assert (f'class="{tone} nowrap">{met}' in alone) == (met != "undecided")
