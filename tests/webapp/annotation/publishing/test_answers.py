"""Answers on pages, in files, and as a version of the dataset."""

import csv
import io
import json

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from tests.team import ApiClient, browser
from trainer.contracts import jsonlines
from webapp.annotation.agreement import refresh
from webapp.annotation.models import Answer, Resolution
from webapp.annotation.publishing import answers as queries
from webapp.annotation.publishing import services as publish
from webapp.core.problems import Conflict, Invalid
from webapp.datasets import queries as datasets

from ..answers import annotators, answer, grades, make_project, preference, ranking, ratings, rubric

pytestmark = pytest.mark.django_db


def text(response) -> str:
    async def read():
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(read)().decode()


@pytest.fixture
def pairs(team):
    """Three tasks: both people for B, opposite sides, one step apart."""
    made = make_project(team, n=4, dimensions=["tone"])
    one, two = annotators(team, made)
    for task, pair in zip(list(made.tasks.order_by("rank"))[:3], [(2, 2), (-3, 3), (1, 2)], strict=True):
        answer(task, one, preference(pair[0], "=SUM(A1) is right", tone=1))
        answer(task, two, preference(pair[1], tone=1), order=(1, 0))
    refresh.bring_up_to_date(made)
    return made


def published(version):
    return {line["key"]: line for line in (json.loads(text) for _, text in datasets.stream_canonical(version))}


def test_an_export_has_everything_a_study_asks_for(pairs, team):
    response = ApiClient(team.reviewer).get(f"/projects/{pairs.pk}/answers/export")
    rows = jsonlines.rows(text(response))
    assert len(rows) == 6 and 'filename="pairwise_project-answers.jsonl"' in response["Content-Disposition"]
    second = rows[1]
    assert second["rater"] == "annotator-2" and "name" not in second
    assert second["content"]["strength"] == 2 and second["shown_order"] == [1, 0]  # the sides as in the dataset
    assert second["guidelines"] == 1 and second["seconds"] == 12 and second["suggestion"] == "never"
    assert (second["revision"], second["gold"], second["state"], second["resolution"]) == (
        1,
        False,
        "standing",
        "unanimous",
    )
    assert rows[2]["resolution"] is None


def test_a_time_that_nobody_measured_is_missing_everywhere_and_never_0(pairs, team):
    Answer.objects.filter(project=pairs).update(seconds=0)
    api, task = ApiClient(team.reviewer), pairs.tasks.order_by("rank").first()
    path = f"/projects/{pairs.pk}/answers"
    given = [*api.get(path).json()["items"], *jsonlines.rows(text(api.get(f"{path}/export")))]
    [seat, _] = api.get(f"/projects/{pairs.pk}/tasks/{task.pk}").json()["seats"]
    people = api.get(f"/tasks/{task.pk}/review").json()["people"]
    rows = csv.DictReader(io.StringIO(text(api.get(f"{path}/export", format="csv"))))
    assert {each["seconds"] for each in [*given, seat, *seat["answers"], *people]} == {None}
    assert {row["seconds"] for row in rows} == {""}
    assert browser(team.reviewer).get(path).content.decode().count("The time was not measured") == 6


def test_a_table_has_the_parts_in_columns_and_runs_nothing(pairs, team):
    rows = list(
        csv.DictReader(
            io.StringIO(text(ApiClient(team.reviewer).get(f"/projects/{pairs.pk}/answers/export", format="csv")))
        )
    )
    assert (rows[0]["strength"], rows[0]["dimension:tone"], rows[0]["rater"]) == ("2", "1", "annotator-1")
    assert rows[0]["reasons"] == "'=SUM(A1) is right" and rows[2]["strength"] == "-3"
    assert "name" not in rows[0]


def test_superseded_revisions_come_only_when_asked_for(pairs, team):
    task = pairs.tasks.order_by("rank").first()
    answer(task, team.annotator, preference(3))
    api = ApiClient(team.reviewer)
    assert len(jsonlines.lines(text(api.get(f"/projects/{pairs.pk}/answers/export")))) == 6
    rows = jsonlines.rows(text(api.get(f"/projects/{pairs.pk}/answers/export", revisions=True)))
    assert sorted(row["state"] for row in rows) == ["standing"] * 6 + ["superseded"]


@pytest.mark.parametrize("revisions", [False, True])
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_answer_that_changes_while_the_file_is_sent_is_in_it_as_it_was(pairs, team, monkeypatch, format, revisions):
    monkeypatch.setattr(queries, "AT_A_TIME", 2)
    path = f"/projects/{pairs.pk}/answers/export"
    response = ApiClient(team.reviewer).get(path, format=format, revisions=revisions)

    async def read() -> str:
        found = b""
        async for part in response.streaming_content:
            if not found:  # the first part is sent; then somebody changes the first and the last answer
                for place in (0, 2):
                    await sync_to_async(answer)(tasks[place], team.annotator, preference(3))
            found += part
        return found.decode()

    tasks = list(pairs.tasks.order_by("rank"))
    sent = async_to_sync(read)()
    rows = jsonlines.rows(sent) if format == "jsonl" else list(csv.DictReader(io.StringIO(sent)))
    assert len(rows) == len({(row["task"], row["rater"]) for row in rows}) == 6
    assert {str(row["state"]) for row in rows} == {"standing"}


def test_answers_are_paged_to_the_end(pairs, team):
    api, seen, cursor = ApiClient(team.reviewer), [], None
    while True:
        found = api.get(f"/projects/{pairs.pk}/answers", limit=4, **({"cursor": cursor} if cursor else {})).json()
        seen += [row["id"] for row in found["items"]]
        cursor = found["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 6 and seen == sorted(seen)
    assert api.get(f"/projects/{pairs.pk}/answers", cursor="x").status_code == 422


def test_names_are_for_those_who_let_people_in(pairs, team):
    path = f"/projects/{pairs.pk}/answers"
    for who in (team.owner, team.researcher):
        assert ApiClient(who).get(path, names=True).json()["items"][0]["name"] == "Anna"
        assert "Anna" in browser(who).get(f"{path}?names=1").content.decode()
        assert "Anna" not in browser(who).get(path).content.decode()
    assert ApiClient(team.reviewer).get(path, names=True).status_code == 403
    assert ApiClient(team.reviewer).get(f"{path}/export", names=True).status_code == 403


def test_what_stands_becomes_one_preference_a_pair(pairs, team):
    version = publish.publish(team.researcher, pairs).version
    assert version.state == "frozen" and version.lineage["from"] == "annotation"
    assert version.lineage["project"] == pairs.pk and version.lineage["base"] == 1
    rows = published(version)
    assert len(rows) == 4
    [only] = rows["e0"]["preferences"]
    assert (only["strength"], only["rater"]) == (2, f"unanimous@project-{pairs.pk}")
    assert [each["text"] for each in only["reasons"]] == ["=SUM(A1) is right"]
    [note] = rows["e0"]["meta"]["annotation"][str(pairs.pk)]["tasks"]
    assert note["source"] == "unanimous" and note["dimensions"] == {"tone": 1} and note["agreement"] == 1
    assert "preferences" not in rows["e1"] and "meta" not in rows["e3"]


def test_each_answer_becomes_a_preference_under_a_pseudonym(pairs, team):
    version = publish.publish(team.researcher, pairs, publish.Choice(what="answers")).version
    rows = published(version)
    given = [(p["rater"], p["strength"]) for p in rows["e1"]["preferences"]]
    mine = f"@project-{pairs.pk}"
    assert given == [(f"annotator-1{mine}", -3), (f"annotator-2{mine}", 3)]
    assert version.counts["preferences"] == 6


def test_the_least_agreement_filters_tasks(pairs, team):
    version = publish.publish(team.researcher, pairs, publish.Choice(what="answers", minimum=0.9, rest=False)).version
    assert set(published(version)) == {"e0", "e2"}
    with pytest.raises(Conflict, match="nothing to publish"):
        publish.publish(team.researcher, pairs, publish.Choice(sources=("majority",)))
    with pytest.raises(Invalid):
        publish.Choice(minimum=1.5)


def test_publishing_again_changes_nothing_and_later_decisions_replace_earlier_ones(pairs, team):
    first = publish.publish(team.researcher, pairs).version
    assert publish.publish(team.researcher, pairs).version == first
    task = pairs.tasks.order_by("rank").first()
    Resolution.objects.filter(task=task).update(source="consolidated", content=preference(-1))
    second = publish.publish(team.researcher, pairs).version
    assert second.number == first.number + 1
    assert [p["strength"] for p in published(second)["e0"]["preferences"]] == [-1]


def test_two_projects_publish_into_one_dataset_the_second_on_what_the_first_made(pairs, team):
    first = publish.publish(team.researcher, pairs).version
    other = make_project(team, "rating", n=1, scales=[{"name": "clarity"}])
    other.version = pairs.version
    other.save()
    task = other.tasks.first()
    task.example = pairs.tasks.order_by("rank").first().example
    task.save()
    for member in annotators(team, other):
        answer(task, member, ratings(clarity=4), order=(0,))
    alone = published(publish.publish(team.researcher, other).version)["e0"]
    assert "preferences" not in alone and set(alone["meta"]["annotation"]) == {str(other.pk)}
    made = publish.publish(team.researcher, other, publish.Choice(base=first.number))
    example = published(made.version)["e0"]
    assert made.counts["kept"] == {"": 1, "others": 1}
    assert example["preferences"] and set(example["meta"]["annotation"]) == {str(pairs.pk), str(other.pk)}
    assert example["meta"]["annotation"][str(other.pk)]["tasks"][0]["ratings"] == {"clarity": 4}


@pytest.mark.parametrize("replace", [True, False])
def test_earlier_labels_give_way_or_stay(team, replace):
    made = make_project(team, n=1, preferences=[{"a": "r2", "b": "r1", "strength": 1, "rater": "import"}])
    for member in annotators(team, made):
        answer(made.tasks.get(), member, preference(2))
    version = publish.publish(team.researcher, made, publish.Choice(replace=replace)).version
    raters = [p["rater"] for p in published(version)["e0"]["preferences"]]
    assert raters == ([] if replace else ["import"]) + [f"unanimous@project-{made.pk}"]


def test_a_consolidated_rubric_becomes_the_examples_rubric(team):
    made = make_project(team, "rubric", n=1)
    for member in annotators(team, made):
        answer(made.tasks.get(), member, rubric("Names three rivers"))
    row = published(publish.publish(team.researcher, made).version)["e0"]
    assert [c["text"] for c in row["rubric"]["criteria"]] == ["Names three rivers"]
    each = published(publish.publish(team.researcher, made, publish.Choice(what="answers", rest=False)).version)["e0"]
    assert len(each["meta"]["annotation"][str(made.pk)]["tasks"]) == 2


def test_a_ranking_becomes_pairs_and_grades_are_kept_beside(team):
    made = make_project(team, "ranking", n=1)
    for member in annotators(team, made):
        answer(made.tasks.get(), member, ranking("r2", "r1"))
    [pair] = published(publish.publish(team.researcher, made).version)["e0"]["preferences"]
    assert (pair["a"], pair["b"], pair["strength"]) == ("r1", "r2", 2)
    criteria = {"criteria": [{"id": "c1", "text": "Is true", "points": 5}]}
    graded = make_project(team, "grading", n=1, rubric=criteria)
    for member in annotators(team, graded):
        answer(graded.tasks.get(), member, grades(c1="met"), order=(0,))
    row = published(publish.publish(team.researcher, graded).version)["e0"]
    assert row["meta"]["annotation"][str(graded.pk)]["tasks"][0]["grades"] == {"c1": "met"}


def test_much_is_published_by_a_job_and_a_refusal_is_shown(
    pairs, team, monkeypatch, eager, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(publish, "AT_ONCE", 1)
    api = ApiClient(team.researcher)
    with django_capture_on_commit_callbacks(execute=True):
        waiting = api.post(f"/projects/{pairs.pk}/publish", {})
    assert waiting.status_code == 202 and waiting.json()["version"] is None
    [job] = api.get(f"/projects/{pairs.pk}/jobs").json()["items"]
    assert (job["kind"], job["state"], job["done"], job["total"]) == ("publish", "finished", 3, 3)
    assert job["result"]["version"] == 2
    assert pairs.version.dataset.versions.count() == 2
    with django_capture_on_commit_callbacks(execute=True):
        api.post(f"/projects/{pairs.pk}/publish", {"sources": ["majority"]})
    page = browser(team.researcher).get(f"/projects/{pairs.pk}/answers").content.decode()
    assert "nothing to publish" in page


def test_publishing_on_the_page_leads_to_the_version(pairs, team):
    client = browser(team.researcher)
    url = f"/projects/{pairs.pk}/publish"
    done = client.post(
        url, {"what": "resolutions", "minimum": "0", "sources": ["unanimous"], "replace": "on", "rest": "on"}
    )
    assert f"/datasets/{pairs.version.dataset_id}/versions/2" in client.get(done["Location"]).content.decode()
    assert "v2" in client.get(f"/projects/{pairs.pk}/answers").content.decode()
    assert client.post(url, {"minimum": "much"})["Location"] == f"/projects/{pairs.pk}/answers"


def test_publishing_again_without_a_new_answer_says_that_nothing_is_new(pairs, team):
    client, form = browser(team.researcher), {"what": "resolutions", "sources": ["unanimous"], "rest": "on"}
    for what, words in (
        ("resolutions", "Published as version 2 of"),
        ("resolutions", "Nothing new: version 2 of"),
        ("answers", "Published as version 3 of"),
        ("resolutions", "Nothing new: version 2 of"),
    ):
        page = client.post(f"/projects/{pairs.pk}/publish", form | {"what": what}, follow=True).content.decode()
        told = ("Published as version 2 of", "Published as version 3 of", "Nothing new: version 2 of")
        assert [each for each in told if each in page] == [words]


def test_a_form_in_which_no_kind_of_judgement_is_ticked_publishes_none(pairs, team):
    client = browser(team.researcher)
    page = client.post(f"/projects/{pairs.pk}/publish", {"what": "resolutions", "rest": "on"}, follow=True)
    assert "Choose at least one kind to include." in page.content.decode()
    assert ApiClient(team.researcher).post(f"/projects/{pairs.pk}/publish", {"sources": []}).status_code == 422
    assert pairs.version.dataset.versions.count() == 1
    client.post(f"/projects/{pairs.pk}/publish", {"what": "answers", "rest": "on"})  # they have no kind to choose
    assert pairs.version.dataset.versions.count() == 2


def test_the_roles(pairs, team):
    path = f"/projects/{pairs.pk}/answers"
    for who, status in ((team.annotator, 403), (team.outsider, 404)):
        api = ApiClient(who)
        assert [api.get(each).status_code for each in (path, f"{path}/export")] == [status] * 2
        assert api.post(f"/projects/{pairs.pk}/publish", {}).status_code == status
        assert browser(who).get(path).status_code == status
        assert browser(who).post(f"/projects/{pairs.pk}/publish").status_code == status
    assert ApiClient(team.reviewer).post(f"/projects/{pairs.pk}/publish", {}).status_code == 403
    assert browser(team.reviewer).post(f"/projects/{pairs.pk}/publish").status_code == 403
    assert ApiClient(team.researcher, scope="read").post(f"/projects/{pairs.pk}/publish", {}).status_code == 403
