"""Rules for every recipe: it runs again from its stored config, its exports are complete and safe, its cases become tasks."""

import csv
import io
import json
import re
from collections import Counter
from copy import deepcopy
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.test import override_settings

from tests.team import Team, make_team
from tests.webapp.annotation.seed import make_annotators
from tests.webapp.inference.conftest import THIS_MACHINE, make_endpoint, serving
from trainer.contracts import Criterion, Example, Message, Preference, Reason, Response, Rubric
from trainer.judges import client
from webapp.annotation.people import services as participants
from webapp.annotation.projects import services as projects
from webapp.annotation.projects import task_services as making
from webapp.annotation.work import queue
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.recipes import RECIPES
from webapp.evaluation.studies import services as studies
from webapp.evaluation.studies import tasks as asking
from webapp.evaluation.work import running
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict

from .test_studies import answer, staffed

pytestmark = pytest.mark.django_db
IN_NONE = ("study", "rubric_audit", "grade_or_compare")
IN_LEADERBOARDS = [name for name in RECIPES if name not in IN_NONE]
EVIL = "<script>alert(1)</script>"
CRITERIA = (Criterion(id="c1", text=f"Says why {EVIL}", points=2), Criterion(id="c2", text="Is kind", points=1))


def example(i: int) -> Example:
    grades = {"subject": {"response": "a"}, "rater": "ann", "grades": {"c1": "met", "c2": "not_met"}}
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content=f"Question {i} {EVIL}"),),
        domain=f"d{i % 2} {EVIL}",
        split="heldout" if i % 2 else "train",
        rubric=Rubric(criteria=CRITERIA),
        responses=tuple(Response(id=name, text=f"{name} {i} {EVIL}", origin=name) for name in ("a", "b")),
        preferences=(Preference(a="a", b="b", strength=-2, rater="ann", reasons=(Reason(text="It is right"),)),),
        meta={"annotation": {"1": {"kind": "grading", "tasks": [grades]}}},
    )


def collected(team, version) -> dict[str, int]:
    """A project that compared responses and one that graded them: two people judged the pair, one person each response."""
    made, people = {}, make_annotators(team.researcher, 2)
    for kind, count in (("pairwise", 2), ("grading", 1)):
        project = projects.create(team.researcher, name=kind, kind=kind, dataset=version, overlap=count)
        projects.set_state(team.researcher, project, "open")
        making.make(project.pk)
        for person in people[:count]:
            participants.add_participant(team.researcher, project, person.user)
            while seats := queue.claim(person, project, 1):
                queue.submit(person, seats[0], SAID[kind], seconds=20.0)
        made[kind] = project.pk
    return {"comparing": made["pairwise"], "grading": made["grading"]}


SAID: dict[str, Any] = {
    "pairwise": {"verdict": "compared", "strength": -2},
    "grading": {"grades": [{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "not_met"}]},
}


def reply(body):
    """Answers as one model in all roles. The question says which role is asked."""
    prompt = body["messages"][-1]["content"]
    item = {"text": "Is kind", "kind": "hard", "importance": "important", "points": 2}
    checked = [{"number": n, "explanation": "", "a_meets": True, "b_meets": False} for n in range(3)]
    met = [{"number": n, "explanation": EVIL, "met": n == 1} for n in (1, 2)]
    said = {
        "Write the rubric": {"items": [item]},
        "Which of these generated items": {"matches": [{"generated": 1, "reference": 1}]},
        "Compare the responses by this rubric": {
            "gatekeeper": checked[0],
            "criteria": checked[1 : 1 + prompt.count("points)")],
            "verdict": "A",
        },
        "Which response is better": {"reasons": ["It is right"], "verdict": "B" if "Question 0" in prompt else "A"},
        "Which of these statements": {"verdicts": met},
    }
    found = next((value for words, value in said.items() if words in prompt), {"rows": [{"human": 1, "scores": [0.9]}]})
    return json.dumps(found)


JUDGES = {
    "pairwise": {"order": "both"},
    "pairwise_rubric": {"order": "given"},
    "checklist": {},
    "rubric_generator": {},
    "rubric_matcher": {},
    "reason_matcher": {},
}


def carried_out(row: Evaluation) -> Evaluation:
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == "finished", row.problem
    return row


def ran(team, endpoint, recipe: str) -> Evaluation:
    """An evaluation by that recipe on the same examples, which has run with judges over the chat server."""
    made = {
        kind: create_judge(team.researcher, name=kind, spec={"kind": kind, "retries": 0, **more}, endpoint=endpoint).pk
        for kind, more in JUDGES.items()
    }
    version = datasets.new_version(
        team.researcher, datasets.create_dataset(team.researcher, "all"), [example(i) for i in range(4)], None, {}
    )
    configs: dict[str, Any] = {
        "judge_audit": {"judges": [{"version": made["pairwise"]}]},
        "reward_benchmark": {"judges": [{"version": made["pairwise"]}]},
        "criterion_audit": {"judges": [{"version": made["checklist"]}]},
        "rubricbench": {
            "judge": made["pairwise"],
            "rubric_judge": made["pairwise_rubric"],
            "generator": made["rubric_generator"],
            "matcher": made["rubric_matcher"],
            "rounds": 1,
            "strict": False,
        },
        "metajudge": {"judges": [{"version": made["pairwise"]}], "matcher": made["reason_matcher"]},
        "policy": {"responses": [{"origin": "a"}, {"origin": "b"}], "judge": made["checklist"]},
        "rubric_audit": {"judge": made["checklist"]},
        "generate": {"writers": [{"endpoint": endpoint.pk}], "split": "", "samples": 2, "judge": made["checklist"]},
        "pass_rate": {"writers": [{"endpoint": endpoint.pk}], "samples": 2, "judge": made["checklist"]},
    }

    def _ran(recipe: str) -> Evaluation:
        if recipe == "study":
            project = studies.make(team.researcher, _ran("rubricbench"), name="Study")
            answer(staffed(team, project, 2), project, lambda seat: -2)
            return carried_out(studies.read(team.researcher, project))
        config = configs[recipe] if recipe in configs else collected(team, version)
        return carried_out(services.create(team.researcher, recipe=recipe, config=config, dataset=version, name=EVIL))

    return _ran(recipe)


@pytest.fixture(scope="module", params=[*IN_LEADERBOARDS, *IN_NONE])
def finished_evaluation(module_rows, request):
    """A finished evaluation by each recipe. It is made once for the tests of this recipe, which follow each other."""
    reached = override_settings(ENDPOINT_NETWORKS=THIS_MACHINE, DIVERSITY_COMMAND=["false"])
    with serving() as server, reached, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "FIRST_PAUSE_S", 0.001)
        server.answer = reply
        alone = transaction.atomic()
        with module_rows():
            alone.__enter__()
            team = make_team()
            row = ran(team, make_endpoint(team, server), request.param)
        yield team, row.pk
        with module_rows():
            transaction.set_rollback(True)
            alone.__exit__(None, None, None)


@pytest.fixture
def team(db, finished_evaluation) -> Team:
    return deepcopy(finished_evaluation[0])


@pytest.fixture
def row(db, finished_evaluation) -> Evaluation:
    return Evaluation.objects.get(pk=finished_evaluation[1])


def test_it_runs_again_from_its_stored_config_and_asks_nothing(team, row):
    before = Verdict.objects.count()
    again = carried_out(services.rerun(team.researcher, row))
    assert (again.config, again.benchmark, again.rerun_of_id) == (row.config, row.benchmark, row.pk)
    assert again.results == row.results and Verdict.objects.count() == before


def test_its_exports_are_whole_and_need_nothing_beside_themselves(row, as_researcher):
    whole = json.loads(b"".join(as_researcher.get(f"/evaluations/{row.pk}/export/json").streaming_content))
    assert whole["results"] == json.loads(json.dumps(row.results)) and whole["config"] == row.config
    assert [case["number"] for case in whole["cases"]] == list(range(1, row.cases.count() + 1))
    report = as_researcher.get(f"/evaluations/{row.pk}/export/html").content.decode()
    for block in row.results["blocks"]:
        assert block["title"].replace("&", "&amp;").replace("'", "&#x27;") in report, block["title"]
    assert row.benchmark in report and "<style>" in report
    assert not re.search(r"<script|<link|<img|src=|@import|url\(|href=", report)
    page = as_researcher.get(f"/evaluations/{row.pk}").content.decode()
    for place in ("/cases", "/cases/1"):
        page += as_researcher.get(f"/evaluations/{row.pk}{place}").content.decode()
    assert EVIL not in report and EVIL not in page


def numbers(results):
    """Every number of a report: (its place, its cell)."""
    yield "headline", results["headline"]["cell"]
    yield from results["coverage"]
    for block in results["blocks"]:
        for row in block.get("rows", []):
            yield from ((block["title"], cell) for cell in row if cell["kind"] != "text")
        for series in block.get("series", []):
            yield from ((block["title"], {"kind": "estimate", **point}) for point in series["points"])
        for point in block.get("points", []):
            yield from ((block["title"], point[axis]) for axis in ("x", "y"))


def test_every_number_has_its_n_and_interval_and_leads_to_the_cases_behind_it(row, as_researcher):
    page = as_researcher.get(f"/evaluations/{row.pk}").content.decode()
    for where, cell in numbers(row.results):
        if cell["value"] is None:
            assert cell["undefined"], where
            continue
        if cell["kind"] == "estimate":
            assert cell["n"] and (cell["interval"] if cell["low"] is None else cell["low"] <= cell["high"]), where
        if cell["kind"] == "number":
            continue
        behind = row.cases.filter(tags__contains=cell["tags"]).count()
        # an accuracy of 1 has no wrong case behind it
        at_an_end = cell["kind"] == "estimate" and cell["value"] in (0, 1)
        assert behind or not cell["value"] or at_an_end, (where, cell)
        query = urlencode([("tag", tag) for tag in cell["tags"]]).replace("&", "&amp;")
        assert f'/evaluations/{row.pk}/cases{query and "?" + query}"' in page, (where, cell)


def test_its_results_are_data_with_every_number_and_open_as_a_table(row, as_researcher):
    found = as_researcher.get(f"/api/v1/evaluations/{row.pk}/results").json()
    assert found["recipe"] == row.recipe and found["other"] == [], "every block has a section"
    listed = [each for name, rows in found.items() if isinstance(rows, list) and name != "notes" for each in rows]
    said = Counter((each["value"], each["low"], each["high"], each["n"], each["why"]) for each in listed)
    said[tuple(found["headline"][name] for name in ("value", "low", "high", "n", "why"))] += 1
    for where, cell in numbers(json.loads(json.dumps(row.results))):
        key = (*(cell.get(name) for name in ("value", "low", "high", "n")), cell.get("undefined") or "")
        assert said[key] > 0, (where, cell)
        said[key] -= 1
    assert all(each["measure"] and (each["value"] is not None or each["why"] or each["text"]) for each in listed)
    table = as_researcher.get(f"/evaluations/{row.pk}/export/csv")
    lines = list(csv.DictReader(io.StringIO(table.content.decode())))
    assert len(lines) == len(listed) + 1 and lines[0]["section"] == "headline"
    assert as_researcher.get(f"/api/v1/evaluations/{row.pk}/results/csv").content == table.content
    document = as_researcher.get("/api/v1/openapi.json").json()["components"]["schemas"]
    schema = next(
        each for each in document.values() if each.get("properties", {}).get("recipe", {}).get("const") == row.recipe
    )
    assert set(schema["properties"]) == set(found)


@pytest.mark.parametrize("kind", ["pairwise", "grading"])
def test_its_cases_become_tasks_for_people(team, row, kind):
    project = asking.make_tasks(team.researcher, row, [], name=f"{row.recipe} {kind}", kind=kind)
    making.make(project.pk)
    project.refresh_from_db()
    assert project.state == "open" and project.tasks_total >= 3


@pytest.mark.parametrize("finished_evaluation", IN_LEADERBOARDS, indirect=True)
def test_it_stands_in_a_leaderboard_with_its_frozen_settings(row, as_researcher):
    board = as_researcher.get(f"/api/v1/leaderboards/{row.benchmark}").json()
    assert board["rows"] and board["measure"] == RECIPES[row.recipe].measure
    assert not set(RECIPES[row.recipe].schema.tried) & set(board["settings"]) and board["rows"][0]["cell"]["n"]
