"""Evaluations that ask judges: a stored answer is not asked for again, after any interruption."""

import json

import pytest

from trainer.judges.calls import expand
from trainer.judges.inputs import of_example
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.sources import judges
from webapp.evaluation.work import running
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RecordedOutput
from webapp.judging.asking.calls import CallCounts, judge_calls
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict
from webapp.judging.verdicts import queries as verdict_queries

from .conftest import make_examples

pytestmark = pytest.mark.django_db
State = Evaluation.State


@pytest.fixture
def judge(team):
    """Replays verdicts: right in both orders about all pairs except p3, whose answer in swapped order cannot be read."""
    endpoint = endpoints.create_endpoint(team.researcher, "recorded", name="tape")
    spec = {"kind": "pairwise", "order": "both", "retries": 0}
    version = create_judge(team.researcher, name="Taped", spec=spec, endpoint=endpoint)
    outputs = []
    for i, example in enumerate(make_examples()):
        for call in expand(version.resolved, version.digest, of_example(example, pair=True)):
            better = "A" if (i % 2 == 0) == (call.subject["order"] == "given") else "B"
            unreadable = i == 3 and call.subject["order"] == "swapped"
            text = "I cannot say." if unreadable else json.dumps({"reasons": ["it is right"], "verdict": better})
            outputs.append(RecordedOutput(endpoint=endpoint, key=call.key, text=text))
    RecordedOutput.objects.bulk_create(outputs)
    return version


def audit_of(team, version, judge, **config) -> Evaluation:
    config = {"judges": [{"version": judge.pk}], **config}
    return services.create(team.researcher, recipe="judge_audit", config=config, dataset=version)


def test_a_judge_is_asked_and_each_case_opens_down_to_the_raw_text(team, version, judge, as_researcher):
    row = audit_of(team, version, judge)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED, row.problem
    cell = row.results["headline"]["cell"]
    assert (cell["value"], cell["n"], cell["missing"]) == (1.0, 4, 1)  # p3 is right in the one order that can be read
    case = row.cases.get(subject__pair="p3")
    page = as_researcher.get(f"/evaluations/{row.pk}/cases/{case.number}").content.decode()
    assert "I cannot say." in page and "it is right" in page
    assert row.results["entries"][0]["judge_version"] == judge.pk
    assert str(judge) in as_researcher.get(f"/leaderboards/{row.benchmark}").content.decode()


def test_run_again_it_asks_nothing_and_finds_the_same(team, version, judge):
    first, second = audit_of(team, version, judge), audit_of(team, version, judge)
    running.run(first.pk)
    before = Verdict.objects.count()
    running.run(second.pk)
    first.refresh_from_db()
    second.refresh_from_db()
    assert Verdict.objects.count() == before == 8 and second.results == first.results


def test_killed_between_two_answers_it_goes_on_behind_the_last(team, version, judge, monkeypatch):
    row = audit_of(team, version, judge)

    class Killed(BaseException):
        """An error that no handler catches: the process has ended."""

    real = judge_calls

    def dying(version, inputs, **kwargs):
        real(version, inputs[:2], **kwargs)
        raise Killed

    monkeypatch.setattr(judges, "judge_calls", dying)
    with pytest.raises(Killed):
        running.run(row.pk)
    monkeypatch.undo()
    stored = set(Verdict.objects.values_list("pk", flat=True))
    assert len(stored) == 4
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED and stored < set(Verdict.objects.values_list("pk", flat=True))


def test_where_calls_are_left_it_pauses_and_says_why(team, version, judge, monkeypatch):
    row = audit_of(team, version, judge)
    halted = CallCounts(total=8, done=2, halted="The budget is used up: 10 of 10 tokens.")
    monkeypatch.setattr(judges, "judge_calls", lambda *args, **kwargs: halted)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.PAUSED and row.problem.startswith("The budget is used up")
    monkeypatch.undo()
    services.move(team.researcher, row, State.QUEUED)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED and row.problem == ""


def test_a_judge_of_another_kind_or_workspace_is_refused_at_its_field(team, version, judge):
    from trainer.config.errors import ConfigInvalid

    for chosen in (judge.pk + 999, criterion_judge(team).pk):
        with pytest.raises(ConfigInvalid) as refused:
            services.create(
                team.researcher, recipe="judge_audit", config={"judges": [{"version": chosen}]}, dataset=version
            )
        assert [problem.path for problem in refused.value.problems] == ["judges.0.version"]
    with pytest.raises(ConfigInvalid):
        services.create(
            team.outsider, recipe="judge_audit", config={"judges": [{"version": judge.pk}]}, dataset=version
        )


def criterion_judge(team):
    endpoint = endpoints.create_endpoint(team.researcher, "recorded", name="other tape")
    return create_judge(team.researcher, name="Criteria", spec={"kind": "criterion"}, endpoint=endpoint)


def test_the_form_offers_the_judges_that_fit(team, judge, as_researcher):
    criterion_judge(team)
    data = {"judges.__count": "0", "action": "add:judges"}
    page = as_researcher.post("/evaluations/new?recipe=judge_audit", data).content.decode()
    assert "Taped v1" in page and "Criteria v1" not in page


def test_new_samples_are_asked_for_and_the_old_ones_kept(team, version, judge):
    first = audit_of(team, version, judge)
    running.run(first.pk)
    kept = set(Verdict.objects.values_list("key", flat=True))
    second = services.rerun(team.researcher, first, resample=True)
    running.run(second.pk)
    third = services.rerun(team.researcher, first, resample=True)
    assert [each.config["draw"] for each in (first, second, third)] == [0, 1, 2]
    assert first.benchmark == second.benchmark == third.benchmark
    new = Verdict.objects.exclude(key__in=kept)
    assert len(kept) == new.count() == 8 and {each.subject["sample"] for each in new} == {1}
    old = Verdict.objects.get(key=sorted(kept)[0])
    assert [each.subject.get("sample", 0) for each in verdict_queries.samples(old)] == [0, 1]


def test_samples_of_a_seeded_judge_are_found_by_their_own_seeds(team, version):
    endpoint = endpoints.create_endpoint(team.researcher, "recorded", name="seeded")
    spec = {"kind": "pairwise", "order": "given", "votes": 3, "sampling": {"seed": 5, "temperature": 0.7}}
    seeded = create_judge(team.researcher, name="Seeded", spec=spec, endpoint=endpoint)
    given = of_example(make_examples()[0], pair=True)
    judge_calls(seeded, [given])
    judge_calls(seeded, [given], draw=1)
    found = verdict_queries.samples(Verdict.objects.filter(version=seeded).order_by("?").first())
    assert [each.subject["sample"] for each in found] == list(range(6))
