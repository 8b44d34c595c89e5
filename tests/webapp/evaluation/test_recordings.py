"""Recorded verdicts are read as the programs that made them wrote them."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.team import ApiClient
from webapp.core.problems import Invalid
from webapp.datasets.versions import services as datasets
from webapp.evaluation.leaderboards import boards as leaders
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.recordings.lines import as_lines
from webapp.evaluation.work import running

from .conftest import as_file, lines, make_examples


def decision(pair: str, model: str = "gpt-4o", **changes) -> dict:
    row = {"pair_id": pair, "source": "mmlu-pro-law", "label": "A>B", "judge_model": "j", "response_model": model}
    return row | {"decision_AB": "A>B", "decision_BA": "B>A"} | changes


def test_lines_of_an_audit_stay_as_they_are():
    content = as_file(lines())
    assert as_lines("verdicts.jsonl", content) is content


def test_decisions_of_a_program_become_lines_of_an_audit():
    found = as_lines("judgments.jsonl", as_file([decision("p1"), decision("p2", decision_BA=None)]))
    assert [json.loads(line) for line in found.decode().split("\n")] == [
        {"judge": "j", "pair": "p1", "group": "knowledge", "label": "A", "given": "A", "swapped": "B"},
        {"judge": "j", "pair": "p2", "group": "knowledge", "label": "A", "given": "A", "swapped": None},
    ]


def test_pairs_of_two_collections_are_not_mixed():
    found = as_lines("judgments.jsonl", as_file([decision("p1"), decision("p1", "claude")]))
    told = [json.loads(line) for line in found.decode().split("\n")]
    assert [(line["pair"], line["group"]) for line in told] == [
        ("p1", "gpt-4o knowledge"),
        ("p1", "claude knowledge"),
    ]


def test_what_a_program_wrote_wrongly_is_named_by_line_and_field():
    with pytest.raises(Invalid) as caught:
        as_lines("judgments.jsonl", as_file([decision("p1"), decision("p2", label="perhaps")]))
    assert caught.value.fields["file"].startswith("judgments.jsonl, line 2: label:")


@pytest.mark.django_db
def test_a_refused_file_is_refused_beside_its_field(client, team):
    client.force_login(team.researcher.user)
    sent = {"recipe": "judge_audit", "file": SimpleUploadedFile("v.jsonl", b'{"judge": "j"}')}
    page = client.post("/evaluations/recordings", sent)
    assert page.status_code == 422 and b'aria-describedby="f-file_error"' in page.content
    assert "is missing" in page.content.decode()


def scored(model: str = "rm-a", **changes) -> list[dict]:
    """The first answer of every pair of `make_examples` scores higher, which is right for every second pair."""
    rows = [
        {"model": model, "example": f"p{i}", "response": response, "score": float(response == "a")}
        for i in range(4)
        for response in "ab"
    ]
    rows[0] |= changes
    return rows


@pytest.mark.django_db
def test_scores_of_reward_models_are_recorded_and_evaluated_on_one_board(team):
    made = datasets.create_dataset(team.researcher, "lists")
    version = datasets.new_version(team.researcher, made, make_examples(), None, {"from": "test"})
    api = ApiClient(team.researcher)
    for model in ("rm-a", "rm-b"):
        sent = {"file": SimpleUploadedFile("scores.jsonl", as_file(scored(model)))}
        stored = api.client.post("/api/v1/evaluations/recordings", sent).json()
        assert (stored["kind"], stored["rows"], stored["judges"]) == ("scores", 8, 1)
        body = {"recipe": "reward_benchmark", "recording": stored["id"], "dataset": {"id": made.pk}, "name": model}
        answer = api.post("/evaluations", body)
        assert answer.status_code == 201, answer.json()
        running.run(answer.json()["id"])
    [board] = leaders.boards(team.workspace.pk)
    assert [(row.name, row.cell["value"]) for row in board.rows] == [("rm-a", 0.5), ("rm-b", 0.5)]
    wrong = {"recipe": "judge_audit", "recording": stored["id"], "dataset": {"id": version.dataset_id}}
    assert "holds scores" in api.post("/evaluations", wrong).json()["error"]["fields"][0]["message"]
    assert api.post("/evaluations", {"recipe": "reward_benchmark", "dataset": {"id": made.pk}}).status_code == 422


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"score": "high"}, "line 1: field 'score': expected a number or null, found 'high'"),
        ({"score": 10**400}, "line 1: field 'score': is not finite, or too large"),
        ({"model": ""}, "line 1: field 'model': is missing"),
        ({"response": "b"}, "line 2: 'rm-a' scored 'b' of 'p0' already on line 1"),
        ({"example": "a\0"}, "line 1: holds a character that cannot be stored"),
    ],
)
def test_scores_that_cannot_be_used_are_named_by_line(team, changes, told):
    with pytest.raises(Invalid) as caught:
        recordings.store_recording(team.researcher, "scores.jsonl", as_file(scored(**changes)))
    assert told in caught.value.fields["file"]


@pytest.mark.django_db
def test_the_form_takes_scores_where_scores_are_read(client, team):
    client.force_login(team.researcher.user)
    recordings.store_recording(team.researcher, "scores.jsonl", as_file(scored()))
    page = client.get("/evaluations/new?recipe=reward_benchmark").content.decode()
    assert "8 scores of 1 model<" in page and "Recorded scores" in page
    assert "scores of" not in client.get("/evaluations/new?recipe=judge_audit").content.decode()


@pytest.mark.django_db
def test_a_dataset_is_named_as_everywhere_in_the_api(team):
    made = datasets.create_dataset(team.researcher, "lists")
    for examples in (make_examples(), make_examples()[:3]):
        datasets.freeze(team.researcher, datasets.new_version(team.researcher, made, examples, None, {"from": "test"}))
    api = ApiClient(team.researcher)
    sent = {"file": SimpleUploadedFile("scores.jsonl", as_file(scored()))}
    stored = api.client.post("/api/v1/evaluations/recordings", sent).json()
    body = {"recipe": "reward_benchmark", "recording": stored["id"]}
    for ref, number in (
        ("lists", 2),
        (made.pk, 2),
        ({"name": "lists", "version": 1}, 1),
        ({"id": made.pk, "version": 1}, 1),
    ):
        answer = api.post("/evaluations", body | {"dataset": ref})
        assert answer.status_code == 201, answer.json()
        assert answer.json()["dataset"]["version"] == number
        sized = api.post("/projects/size", {"dataset": ref, "kind": "rating", "overlap": 1})
        assert sized.status_code == 200, sized.json()
    for ref in ("nobody's", {"name": "lists", "version": 3}, {}):
        answer = api.post("/evaluations", body | {"dataset": ref})
        assert (answer.status_code, answer.json()["error"]["fields"][0]["path"]) == (422, "dataset")
