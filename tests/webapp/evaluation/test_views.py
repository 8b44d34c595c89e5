"""The pages of evaluations: who may see them, what they say, and what they cost."""

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import browser
from webapp.annotation.models import Project
from webapp.evaluation.models import Case, Evaluation
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running

from .conftest import as_file, lines

pytestmark = pytest.mark.django_db
RESOURCES = {f"resources.{name}": "0" for name in ("cpus", "gpus", "memory_gb")}
UNTOUCHED = {"draw": "0", "judges.__count": "0", **RESOURCES}


def pages(row: Evaluation) -> list[str]:
    base = f"/evaluations/{row.pk}"
    exports = [f"{base}/export/json", f"{base}/export/html"]
    return [
        "/evaluations",
        base,
        f"{base}/state?was=finished",
        f"{base}/cases",
        f"{base}/cases/1",
        f"{base}/config",
        *exports,
    ] + [
        "/leaderboards",
        f"/leaderboards/{row.benchmark}",
    ]


WRITES = ("again", "rerun", "tasks", "study", "move", "rename", "delete")


def test_reviewers_read_everything_and_change_nothing(team, finished):
    client = browser(team.reviewer)
    for page in pages(finished):
        assert client.get(page).status_code == 200, page
    for name in WRITES:
        assert client.post(f"/evaluations/{finished.pk}/{name}").status_code == 403, name
    assert client.get("/evaluations/new").status_code == 403
    assert "Create annotation tasks" not in client.get(f"/evaluations/{finished.pk}/cases").content.decode()


def test_an_open_page_is_loaded_again_when_the_state_changes(finished, as_researcher):
    address = f"/evaluations/{finished.pk}/state?was="
    assert "HX-Refresh" not in as_researcher.get(address + "finished")
    assert as_researcher.get(address + "running")["HX-Refresh"] == "true"
    Evaluation.objects.filter(pk=finished.pk).update(state="running")
    assert as_researcher.get(address + "queued")["HX-Refresh"] == "true"
    assert "HX-Refresh" not in as_researcher.get(address + "running")


def test_annotators_see_nothing(team, finished, as_annotator):
    for page in [*pages(finished), "/evaluations/new"]:
        assert as_annotator.get(page).status_code == 403, page


def test_outsiders_find_nothing(team, finished, as_outsider):
    for page in pages(finished):
        wanted = 200 if page in ("/evaluations", "/leaderboards") else 404
        assert as_outsider.get(page).status_code == wanted, page
    for name in WRITES:
        assert as_outsider.post(f"/evaluations/{finished.pk}/{name}").status_code == 404, name


def test_the_empty_list_says_what_to_do(as_researcher):
    assert "Start the first one" in as_researcher.get("/evaluations").content.decode()


def test_the_list_shows_the_headline_with_its_interval(as_researcher, finished):
    page = as_researcher.get("/evaluations").content.decode()
    assert "Accuracy of good" in page and "100.0%" in page and "n 4" in page


def test_the_result_links_each_number_to_its_cases(as_researcher, finished):
    page = as_researcher.get(f"/evaluations/{finished.pk}").content.decode()
    assert f"/evaluations/{finished.pk}/cases?tag=judge%3Ahasty&amp;tag=wrong" in page


def test_the_cases_of_a_number_are_as_many_as_it_says(as_researcher, finished):
    page = as_researcher.get(f"/evaluations/{finished.pk}/cases?tag=judge:hasty&tag=inconsistent").content.decode()
    assert "2 cases" in page and "p0" in page and not re.search(r"\bp2\b", page)  # a token may contain it


def test_a_case_opens_prompt_and_responses(as_researcher, finished):
    page = as_researcher.get(f"/evaluations/{finished.pk}/cases/1").content.decode()
    assert "Question 0 ü" in page and "Second answer 0" in page


def test_from_an_upload_to_a_running_evaluation(as_researcher):
    file = SimpleUploadedFile("verdicts.jsonl", as_file(lines()))
    sent = as_researcher.post("/evaluations/recordings", {"recipe": "judge_audit", "file": file})
    form = as_researcher.get(sent.url)
    assert "8 verdict pairs of 2 judges" in form.content.decode()
    recording = sent.url.rpartition("=")[2]
    started = as_researcher.post(
        "/evaluations/new?recipe=judge_audit",
        {"recording": recording, **UNTOUCHED, "action": "start"},
    )
    row = Evaluation.objects.get()
    assert started.url == f"/evaluations/{row.pk}" and row.state == "queued"
    assert "updates by itself" in as_researcher.get(started.url).content.decode()


def test_a_refused_form_says_why_at_the_field(as_researcher):
    answer = as_researcher.post("/evaluations/new?recipe=judge_audit", {**UNTOUCHED, "action": "start"})
    assert answer.status_code == 422
    assert "choose recorded verdicts, or judges to ask" in answer.content.decode()


def test_problems_beside_the_button_lead_to_their_fields(as_researcher):
    def links(**given: str) -> dict[str, str]:
        data = {**UNTOUCHED, "action": "start", **given}
        page = as_researcher.post("/evaluations/new?recipe=judge_audit", data).content.decode()
        found = dict(re.findall(r'<a class="to-fix" href="#([^"]+)">([^<]+)</a>', page))
        assert all(f'id="{place}"' in page for place in found)
        return found

    assert links() == {"f-recording": "Recording"}
    assert links(draw="first") == {"f-draw": "Draw"}


def test_the_json_holds_every_case(as_researcher, finished):
    answer = as_researcher.get(f"/evaluations/{finished.pk}/export/json")
    body = json.loads(b"".join(answer.streaming_content))
    assert body["results"]["headline"] == finished.results["headline"] and len(body["cases"]) == 8
    assert body["config"] == finished.config


def test_the_report_needs_nothing_beside_itself(as_researcher, finished):
    page = as_researcher.get(f"/evaluations/{finished.pk}/export/html").content.decode()
    assert "100.0%" in page and "n 4" in page
    for outside in ("<script", "href=", "src=", "url(", "@import"):
        assert outside not in page


def test_what_a_judge_says_cannot_break_out_of_a_page(as_researcher, team, audit):
    rows = [line | {"judge": "<script>alert(1)</script>"} for line in lines() if line["judge"] == "good"]
    row = audit(recording=recordings.store_recording(team.researcher, "x", as_file(rows)))
    running.run(row.pk)
    for page in pages(row):
        answer = as_researcher.get(page)
        if not answer.streaming:
            assert "<script>alert" not in answer.content.decode(), page


def test_inconsistent_cases_become_tasks_with_one_click(
    as_researcher, finished, eager, django_capture_on_commit_callbacks
):
    form = {"tag": ["judge:hasty", "inconsistent"], "name": "Hard pairs", "kind": "pairwise", "overlap": "3"}
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_researcher.post(f"/evaluations/{finished.pk}/tasks", form)
    project = Project.objects.get()
    assert answer.url == f"/projects/{project.pk}"
    project.refresh_from_db()
    assert (project.state, project.overlap, project.tasks_total) == ("open", 3, 2)
    assert {task.example.key for task in project.tasks.all()} == {"p0", "p1"}
    again = as_researcher.post(f"/evaluations/{finished.pk}/tasks", form, follow=True)
    assert "There is a dataset with this name already." in again.content.decode()


def test_the_leaderboard_ranks_what_shares_data_and_settings(as_researcher, finished, audit):
    other = audit(config={"max_pairs": 2})
    running.run(other.pk)
    page = as_researcher.get(f"/leaderboards/{finished.benchmark}").content.decode()
    assert page.index("good") < page.index("hasty") and "Frozen settings" in page
    assert other.benchmark != finished.benchmark
    assert as_researcher.get("/leaderboards").content.decode().count("board") > 1


def queries_of(client, page: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(page).status_code == 200
    return len(captured)


def test_pages_cost_the_same_however_much_there_is(as_researcher, finished, audit):
    before = {page: queries_of(as_researcher, page) for page in pages(finished)}
    for _ in range(3):
        row = audit()
        running.run(row.pk)
    first = Case.objects.filter(evaluation=finished).first()
    more = [
        Case(evaluation=finished, number=100 + i, subject=first.subject, values=first.values, tags=first.tags)
        for i in range(9)
    ]
    Case.objects.bulk_create(more)
    assert {page: queries_of(as_researcher, page) for page in pages(finished)} == before
