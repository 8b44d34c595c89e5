"""The known quality of a judge version on labels: only from finished evaluations that asked it."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from trainer.judges.spec import resolve as resolve_spec
from webapp.datasets.versions import services as datasets
from webapp.evaluation.licences import licence as licensing
from webapp.evaluation.licences.licence import licences
from webapp.evaluation.models import Case, Evaluation
from webapp.inference.models import Endpoint
from webapp.judging.models import Judge, JudgeVersion

from .conftest import make_examples

CELL = {"kind": "estimate", "unit": "share", "tags": [], "value": 0.8, "low": 0.7, "high": 0.9, "n": 120, "missing": 2}


@pytest.fixture(autouse=True)
def fresh():
    cache.clear()


@pytest.fixture
def judge(team) -> JudgeVersion:
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="here", kind="chat", url="https://x", model="m")
    row = Judge.objects.create(workspace=team.workspace, name="Grader", kind="criterion")
    spec = resolve_spec({"kind": "criterion"}).model_dump(mode="json")
    return JudgeVersion.objects.create(judge=row, number=1, spec=spec, endpoint=endpoint, digest="e" * 64)


def measured(team, version, name="audit", recipe="criterion_audit", state="finished", known=None, **cell) -> Evaluation:
    entry = {"name": str(version), "cell": CELL | cell, "judge_version": version.pk, "judge": version.judge_id}
    return Evaluation.objects.create(
        workspace=team.workspace,
        name=name,
        recipe=recipe,
        benchmark="b",
        state=state,
        ended_at=timezone.now(),
        results={"entries": [{"name": "other", "cell": CELL, "judge_version": 10**9}, entry | {"known": known or {}}]},
    )


def licence(team, version):
    cache.clear()
    return licences(team.workspace.pk, [version])[version.pk]


def test_nothing_known_is_said_in_words(team, judge, api, as_researcher):
    found = licence(team, judge)
    assert not found.known and "Nobody has compared" in found.warnings[0] and found.recipe == "criterion_audit"
    told = api.get(f"/judges/{judge.judge_id}/versions/1/licence").json()
    assert (told["known"], told["measured_by"], told["warnings"]) == ([], "criterion_audit", found.warnings)
    assert as_researcher.get(f"/evaluations/new?recipe={found.recipe}").status_code == 200


def test_what_was_found_comes_with_n_interval_and_place(team, judge, api):
    more = {"kappa": CELL | {"value": 0.5, "unit": "points"}, "judge": CELL, "humans": CELL, "place": "within"}
    measured(team, judge, known=more)
    (found,) = api.get(f"/judges/{judge.judge_id}/versions/1/licence").json()["known"]
    assert [each["name"] for each in found["measures"]] == ["Agreement", "Kappa", "With a person", "Two people"]
    numbers = {"value": 0.8, "low": 0.7, "high": 0.9, "n": 120, "missing": 2, "why": ""}
    assert found["measures"][0] == {"name": "Agreement", **numbers} and not found["waiting"]
    assert found["human_range"] == "within" and found["ended_at"]


def test_only_this_version_only_finished_and_only_here(team, judge):
    other = JudgeVersion.objects.create(
        judge=judge.judge, number=2, spec=judge.spec, endpoint=judge.endpoint, digest="f" * 64
    )
    measured(team, other)
    measured(team, judge, state="running")
    measured(team, judge, recipe="policy")
    foreign = measured(team, judge)
    Evaluation.objects.filter(pk=foreign.pk).update(workspace=team.outsider.workspace)
    assert not licence(team, judge).known and len(licence(team, other).known) == 1


def test_the_newest_stand_first_and_what_gives_pause_is_said(team, judge):
    for number in range(5):
        measured(team, judge, name=f"audit {number}")
    assert [each.name for each in licence(team, judge).known] == ["audit 4", "audit 3", "audit 2"]
    assert licence(team, judge).warnings == []
    measured(team, judge, n=12, known={"place": "below"})
    assert "only 12 labels" in licence(team, judge).warnings[0] and "People agree" in licence(team, judge).warnings[1]
    measured(team, judge, value=None)
    assert "no number" in licence(team, judge).warnings[0]


def test_one_query_for_many_and_none_the_second_time(team, judge):
    rows = [judge] + [
        JudgeVersion.objects.create(
            judge=judge.judge, number=n, spec=judge.spec, endpoint=judge.endpoint, digest=str(n) * 64
        )
        for n in range(2, 6)
    ]
    rows = list(JudgeVersion.objects.select_related("judge").filter(pk__in=[row.pk for row in rows]))
    for count in (1, 0):
        with CaptureQueriesContext(connection) as caught:
            licences(team.workspace.pk, rows)
        assert len(caught) == count


def older(team, version, found=True) -> Evaluation:
    """An audit of four pairs, as it was stored before licences showed more than accuracy."""
    made = datasets.create_dataset(team.researcher, "pairs")
    pairs = datasets.new_version(team.researcher, made, make_examples(), None, {"from": "test"})
    row = measured(team, version, recipe="judge_audit")
    Evaluation.objects.filter(pk=row.pk).update(dataset_version=pairs)
    said = [("A", "A", "A"), ("B", "A", "A"), ("A", "A", None), ("B", "B", "B")]
    for number, (label, given, swapped) in enumerate(said if found else [], 1):
        key = f"p{number - 1}"
        subject = {"judge": str(version), "pair": key, "example": key}
        Case.objects.create(
            evaluation=row,
            number=number,
            subject=subject,
            values={"label": label, "given": given, "swapped": swapped},
            tags=[],
        )
    return row


def test_an_older_evaluation_is_completed_by_a_worker_from_what_it_has_stored(
    team, judge, api, eager, django_capture_on_commit_callbacks
):
    row = older(team, judge)
    path = f"/judges/{judge.judge_id}/versions/1/licence"
    with django_capture_on_commit_callbacks() as asked:
        (first,) = api.get(path).json()["known"]
        api.get(path)
    assert first["waiting"] and [each["name"] for each in first["measures"]] == ["Accuracy"] and len(asked) == 1
    assert first["dataset"]["name"] == "pairs" and first["dataset"]["version"] == 1
    asked[0]()
    (then,) = api.get(path).json()["known"]
    measures = {each["name"]: each for each in then["measures"]}
    # three of four are as the labels A B A B say, half of that by chance
    assert not then["waiting"] and measures["Kappa"]["value"] == 0.5 and measures["Kappa"]["n"] == 4
    assert (measures["Order consistency"]["value"], measures["Order consistency"]["n"]) == (1.0, 3)
    assert then["human_range_why"] == "two people or more judged none of these pairs"
    stored = Evaluation.objects.get(pk=row.pk).results
    licensing.work_out(row.pk)
    assert Evaluation.objects.get(pk=row.pk).results == stored


def test_where_the_cases_say_nothing_that_is_said_in_words(team, judge, api):
    licensing.work_out(older(team, judge, found=False).pk)
    (known,) = api.get(f"/judges/{judge.judge_id}/versions/1/licence").json()["known"]
    assert not known["waiting"] and known["human_range_why"] == licensing.NOT_STORED
    assert [(each["value"], each["why"]) for each in known["measures"]][1] == (None, licensing.NOT_STORED)


def test_a_reward_benchmark_says_why_it_knows_no_human_range(team, judge):
    measured(team, judge, recipe="reward_benchmark")
    (known,) = licence(team, judge).known
    assert not known.waiting and known.place_why == licensing.ONE_LABEL
