"""The workbench's page, and the settings that a person makes there."""

import re

import pytest
from django.urls import reverse

from tests.team import ApiClient
from webapp.annotation.models import Guidelines, Participant, Project
from webapp.datasets.models import Dataset, DatasetVersion

GOLD = {"gold_every": 7, "gold_feedback": True, "fast_seconds": 3.5}


@pytest.fixture
def project(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="pairs")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="d" * 64)
    settings = {"reasons": "required", "keys": {"flag": "x"}, **GOLD}
    made = Project.objects.create(
        workspace=team.workspace, name="Autumn", kind="pairwise", version=version, state="open", settings=settings
    )
    Guidelines.objects.create(project=made, number=1, text="Judge like an *expert*. <script>alert(1)</script>")
    return made


@pytest.fixture
def seat(team, project):
    return Participant.objects.create(project=project, user=team.annotator.user)


def test_a_participant_gets_the_frame_with_guidelines_and_keys(as_annotator, project, seat):
    Participant.objects.update(keys={"skip": "q"})
    response = as_annotator.get(reverse("project_work", args=[project.id]))
    assert response.context["setup"]["keys"] == {"project": {"flag": "x"}, "own": {"skip": "q"}}
    assert "<em>expert</em>" in response.text and "<script>alert" not in response.text


def test_the_page_knows_whether_a_person_has_worked_in_the_project(as_annotator, project, seat):
    address = reverse("project_work", args=[project.id])
    assert as_annotator.get(address).context["setup"]["unread"] is True
    Guidelines.objects.update(text="")
    assert as_annotator.get(address).context["setup"]["unread"] is False  # nothing to read
    Guidelines.objects.update(text="Be kind.")
    Participant.objects.update(submitted=1)
    assert as_annotator.get(address).context["setup"]["unread"] is False


def test_the_page_does_not_say_when_gold_tasks_come(as_annotator, project, seat):
    setup = as_annotator.get(reverse("project_work", args=[project.id])).context["setup"]
    assert not {"gold_every", "fast_seconds"} & set(setup["settings"])


def test_the_page_names_the_modules_it_needs_and_no_others(as_annotator, project, seat):
    page = as_annotator.get(reverse("project_work", args=[project.id])).text
    found = set(re.findall(r'<link rel="modulepreload" href="/static/([^"]+)">', page))
    assert {
        f"js/{each}.js" for each in ("annotate/frame", "annotate/kinds/pairwise", "annotate/reasons", "http")
    } <= found
    assert not {"js/annotate/kinds/rubric.js", "js/runs.js"} & found


def test_newer_guidelines_can_be_fetched_alone(as_annotator, project, seat):
    Guidelines.objects.create(project=project, number=2, text="Judge **kindly**.")
    response = as_annotator.get(reverse("project_work_guidelines", args=[project.id]))
    assert 'data-number="2"' in response.text and "<strong>kindly</strong>" in response.text


@pytest.mark.parametrize("name", ["project_work", "project_work_guidelines"])
def test_who_was_not_let_in_finds_nothing(name, as_annotator, as_outsider, project):
    assert as_annotator.get(reverse(name, args=[project.id])).status_code == 404
    assert as_outsider.get(reverse(name, args=[project.id])).status_code == 404


def test_own_keys_are_kept_and_replaced_as_a_whole(team, project, seat):
    script = ApiClient(team.annotator)
    path = f"/projects/{project.id}/keys"
    assert script.patch(path, {"keys": {"submit": "Mod+Enter", "flag": "z"}}).json()["keys"]["flag"] == "z"
    script.patch(path, {"keys": {"flag": "é"}})
    seat.refresh_from_db()
    assert seat.keys == {"flag": "é"}


def test_a_reviewer_has_keys_before_the_first_task(team, project):
    ApiClient(team.reviewer).patch(f"/projects/{project.id}/keys", {"keys": {"flag": "z"}})
    assert Participant.objects.get(user=team.reviewer.user).keys == {"flag": "z"}


@pytest.mark.parametrize(
    ("keys", "where", "why"),
    [
        ({"flag": "Tab"}, "keys.flag", "belongs to the browser"),
        ({"flag": "Shift+Escape"}, "keys.flag", "belongs to the browser"),
        ({"flag": "Alt+f"}, "keys.flag", "belongs to the browser"),
        ({"flag": "z", "skip": "z"}, "keys.flag", "more than one"),
        ({"flag": ""}, "keys.flag", "1 to 20"),
        ({"flag": "a\u202eb"}, "keys.flag", "1 to 20"),
        ({"Flag it!": "z"}, "keys.Flag it!", "not the name"),
        ({f"a{i}": chr(0x4E00 + i) for i in range(81)}, "keys", "at most 80"),
    ],
)
def test_a_key_that_would_lock_somebody_out_is_refused(team, project, seat, keys, where, why):
    response = ApiClient(team.annotator).patch(f"/projects/{project.id}/keys", {"keys": keys})
    fields = {field["path"]: field["message"] for field in response.json()["error"]["fields"]}
    assert response.status_code == 422 and why in fields[where]
    seat.refresh_from_db()
    assert seat.keys == {}


def test_strangers_to_the_project_have_no_keys_in_it(team, project):
    for membership in (team.annotator, team.outsider):
        assert ApiClient(membership).patch(f"/projects/{project.id}/keys", {"keys": {}}).status_code == 404


def test_texts_are_formatted_in_their_order_and_harmless(team):
    response = ApiClient(team.annotator).post("/render", {"texts": ["**a**", "<img src=x onerror=alert(1)>", "$x^2$"]})
    first, second, third = response.json()["html"]
    assert "<strong>a</strong>" in first and "<img" not in second and '<span class="math" dir="ltr">x^2</span>' in third


def test_a_list_shows_how_a_text_begins(team):
    texts = {"texts": ["Show\n\n- [that](https://a.example) $x^2$"], "preview": True}
    (html,) = ApiClient(team.annotator).post("/render", texts).json()["html"]
    assert html.startswith("Show - that <span") and ">x^2</span>" in html


def test_more_text_than_a_page_can_show_is_refused(team):
    response = ApiClient(team.annotator).post("/render", {"texts": ["x" * 300_000, "x" * 300_000]})
    assert response.status_code == 422
