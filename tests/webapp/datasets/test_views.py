"""The pages of datasets: what they show, who may see them, and their cost."""

from errno import ENOSPC

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.utils.html import strip_tags

from tests.pages import page_html
from tests.team import browser
from webapp.datasets.ingest import uploads
from webapp.datasets.models import Dataset, Example, ImportJob
from webapp.datasets.versions.services import freeze

from .conftest import row


def upload(text='{"prompt": "Hi", "chosen": "a", "rejected": "b"}\n', name="pairs.jsonl"):
    return SimpleUploadedFile(name, text.encode())


def test_an_empty_workspace_says_what_to_do(as_researcher):
    assert b"Import a file" in as_researcher.get("/datasets").content


def test_an_empty_version_has_a_button_to_import_for_those_who_may(as_researcher, team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="No rows")
    dataset.versions.create(number=1, digest="d" * 64)
    address = f"/datasets/{dataset.pk}/versions/1"
    card = page_html(as_researcher.get(address)).partition("This version has no examples")[2]
    assert 'href="/datasets/import?name=No%20rows"' in card
    page = page_html(browser(team.reviewer).get(address))
    assert "A researcher of this workspace can import a file" in page and "/datasets/import?" not in page


def test_the_preview_shows_rows_and_problems_and_writes_nothing(as_researcher, settings):
    page = as_researcher.post(
        "/datasets/import/preview", {"file": upload('{"prompt": "Hi <b>", "chosen": "a", "rejected": "b"}\n{"x\n')}
    )
    assert b"TRL preference" in page.content and b"Hi &lt;b&gt;" in page.content and b"line 2" in page.content
    assert not ImportJob.objects.exists()
    assert not list((settings.VAR / "uploads").iterdir())


def test_an_upload_becomes_a_dataset(as_researcher, eager, django_capture_on_commit_callbacks, settings):
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_researcher.post("/datasets/import", {"file": upload(), "name": "Pairs", "format": "auto"})
    job = ImportJob.objects.get()
    assert answer.url == f"/imports/{job.pk}"
    assert b"Version 1" in as_researcher.get(answer.url).content
    assert not list((settings.VAR / "uploads").iterdir())
    assert Dataset.objects.get().name == "Pairs"


def test_an_import_is_cancelled_from_its_card_by_those_who_may_import(as_researcher, team):
    as_researcher.post("/datasets/import", {"file": upload(), "name": "Pairs", "format": "auto"})
    job = ImportJob.objects.get()
    button = f'action="/imports/{job.pk}/cancel"'.encode()
    pages = ("/datasets", f"/imports/{job.pk}")
    assert all(button in as_researcher.get(page).content for page in pages)
    as_reviewer = browser(team.reviewer)
    assert not any(button in as_reviewer.get(page).content for page in pages)
    assert as_reviewer.post(f"/imports/{job.pk}/cancel").status_code == 403
    assert as_researcher.post(f"/imports/{job.pk}/cancel", follow=True).redirect_chain == [(f"/imports/{job.pk}", 302)]
    assert b"was cancelled" in as_researcher.get(f"/imports/{job.pk}").content
    ImportJob.objects.update(state="finished")
    assert b"has finished already" in as_researcher.post(f"/imports/{job.pk}/cancel", follow=True).content


def test_how_many_responses_there_are_and_how_long_they_are_can_be_told_apart(import_rows, as_researcher):
    version = import_rows([{"prompt": "2 + 2?", "chosen": "4", "rejected": "five"}]).version
    page = page_html(as_researcher.get(f"/datasets/{version.dataset_id}"))
    assert ">Responses (length)</abbr>" in page and '2 <span class="muted">(2)</span>' in page


def test_an_empty_file_is_refused_at_its_field(as_researcher):
    answer = as_researcher.post("/datasets/import", {"file": upload(""), "name": "Pairs"})
    assert answer.status_code == 422 and b"empty" in answer.content


@pytest.mark.parametrize("url", ["/datasets/import", "/datasets/import/preview"])
def test_a_file_that_is_too_large_is_refused_and_not_kept(as_researcher, settings, monkeypatch, url):
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 10)
    answer = as_researcher.post(url, {"file": upload(), "name": "Pairs"})
    assert answer.status_code == 422 and b"larger than" in answer.content
    assert not list((settings.VAR / "uploads").iterdir())


def test_a_full_disk_is_named_and_nothing_is_left_on_it(as_researcher, settings, monkeypatch):
    def full(path, chunks):
        path.write_bytes(b"half")
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(uploads, "_write", full)
    answer = as_researcher.post("/datasets/import", {"file": upload(), "name": "Pairs"})
    assert answer.status_code == 422 and b"disk is full" in answer.content
    assert not list((settings.VAR / "uploads").iterdir())


@pytest.mark.parametrize("url", ["/datasets/import", "/api/v1/datasets/import"])
def test_a_file_whose_import_does_not_begin_is_not_kept(as_researcher, settings, monkeypatch, url):
    def away(*args, **kwargs):
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(ImportJob.objects, "create", away)
    as_researcher.raise_request_exception = False
    answer = as_researcher.post(url, {"file": upload(), "name": "Pairs"})
    assert answer.status_code == 503
    assert not list((settings.VAR / "uploads").iterdir())


def test_examples_are_searched_and_filtered(import_rows, as_researcher):
    version = import_rows(
        [row("e1", domain="maths", prompt="Integrate gently"), row("e2", prompt="用中文写一首诗")]
    ).version
    url = f"/datasets/{version.dataset_id}"
    assert b"Integrate" in as_researcher.get(url, {"q": "INTEG"}).content
    assert "一首诗" in as_researcher.get(url, {"q": "一首"}).content.decode()
    assert b"No example matches" in as_researcher.get(url, {"q": "absent"}).content
    assert b"e2</a>" not in as_researcher.get(url, {"domain": "maths"}).content
    assert as_researcher.get(url, {"cursor": "zz"}).status_code == 302


def test_the_page_of_an_import_says_what_comes_next_and_names_the_format_as_the_form_does(
    import_rows, as_researcher, team
):
    job = import_rows([{"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}])
    page = page_html(as_researcher.get(f"/imports/{job.pk}"))
    assert "TRL preference ·" in page and "trl_preference" not in page
    assert f'href="/projects/new?version={job.version_id}"' in page
    assert f'href="/runs/new?dataset={job.version.dataset_id}:{job.version.number}"' in page
    assert "/projects/new" not in page_html(browser(team.reviewer).get(f"/imports/{job.pk}"))


def test_an_example_shows_all_that_is_known(import_rows, as_researcher):
    import_rows(
        [
            row(
                rubric={
                    "criteria": [
                        {
                            "text": "Names <i>red</i>",
                            "points": 3,
                            "verifier": {"name": "word_count", "args": {"max": 9}},
                        }
                    ]
                },
                responses=[{"id": "a", "text": "**bold** <script>alert(1)</script>"}, {"id": "b", "text": "مرحبا"}],
                preferences=[
                    {
                        "a": "a",
                        "b": "b",
                        "strength": 2,
                        "reasons": [{"text": "kinder", "response": "b", "start": 0, "end": 3}],
                    }
                ],
                meta={"seen": "twice"},
            )
        ]
    )
    page = page_html(as_researcher.get(f"/examples/{Example.objects.get().pk}"))
    for wanted in ("+3", "word_count", "<strong>bold</strong>", "b is better than a", "kinder", "twice", 'dir="auto"'):
        assert wanted in page
    assert "<script>alert" not in page and "<i>red" not in page
    assert 'data-code="too_few"' in page  # the hints that its author would see


def test_an_example_shows_which_criterion_a_hint_is_about(import_rows, as_researcher):
    criteria = [
        {"text": "Names red and explains why it fits.", "points": 3},
        {"text": "Ends with a question.", "points": 2},
    ]
    import_rows([row(rubric={"criteria": criteria})])
    page = as_researcher.get(f"/examples/{Example.objects.get().pk}").content.decode()
    assert (
        'data-code="compound"' in page
        and '<div class="soft" dir="auto">Names red and explains why it fits.</div>' in page
    )
    assert 'data-code="too_few"' not in page


def test_strangers_get_404_and_annotators_403_everywhere(import_rows, as_outsider, as_annotator, team):
    job = import_rows([row()])
    example = Example.objects.get()
    urls = [f"/datasets/{job.version.dataset_id}", f"/examples/{example.pk}", f"/imports/{job.pk}"]
    assert [as_outsider.get(url).status_code for url in urls] == [404] * 3
    assert [as_annotator.get(url).status_code for url in [*urls, "/datasets", "/models"]] == [403] * 5
    assert as_outsider.post(f"/datasets/{job.version.dataset_id}/versions/1/freeze").status_code == 404


def test_a_version_is_frozen_once(import_rows, as_researcher, team):
    version = import_rows([row()]).version
    as_researcher.post(f"/datasets/{version.dataset_id}/versions/1/freeze")
    version.refresh_from_db()
    stamp = version.frozen_at
    assert version.state == "frozen" and freeze(team.researcher, version).frozen_at == stamp


@pytest.mark.parametrize("url", ["/datasets", "/datasets/{id}"])
def test_the_number_of_queries_stays_flat_as_rows_double(
    import_rows, as_researcher, django_assert_max_num_queries, url
):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def cost():
        dataset = Dataset.objects.order_by("id").first()
        with CaptureQueriesContext(connection) as captured:
            assert as_researcher.get(url.format(id=dataset.pk)).status_code == 200
        return len(captured)

    import_rows([row(f"e{i}") for i in range(5)], name="one")
    before = cost()
    import_rows([row(f"e{i}") for i in range(10)], name="one")
    import_rows([row(f"e{i}") for i in range(10)], name="two")
    assert cost() == before


def test_both_bad_and_cannot_assess_are_told_apart(import_rows, as_researcher):
    responses = [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]
    said = {"bad": ["both_bad"], "unsure": ["cannot_assess"], "mixed": ["cannot_assess", "both_bad"], "none": []}
    rows = [
        row(key, responses=responses, preferences=[{"a": "a", "b": "b", "verdict": each} for each in verdicts])
        for key, verdicts in said.items()
    ]
    rows.append(row("better", responses=responses, preferences=[{"a": "a", "b": "b", "strength": 2}]))
    version = import_rows(rows, format="touchstone").version
    page = as_researcher.get(f"/datasets/{version.dataset_id}/versions/1")
    told = {member.example.key: words for member, words in page.context["rows"]}
    assert told == {
        "bad": "both bad",
        "unsure": "cannot assess",
        "mixed": "both bad, cannot assess",
        "none": "",
        "better": "",
    }
    assert ">both bad, cannot assess<" in page.content.decode()
    listed = as_researcher.get(f"/api/v1/datasets/{version.dataset_id}/versions/1/examples").json()["items"]
    assert {item["key"]: item["undecided"] for item in listed} == {
        "bad": ["both_bad"],
        "unsure": ["cannot_assess"],
        "mixed": ["both_bad", "cannot_assess"],
        "none": [],
        "better": [],
    }


@pytest.mark.parametrize(
    ("strengths", "listed", "on_its_page"),
    [
        ([-2], "first by 2", "a is better than b by 2 of 3"),
        ([3, 2], "second by 2.5", "b is better than a by 3 of 3"),
        ([0], "tie", "a and b are equal"),
    ],
)
def test_how_much_better_a_response_is_is_told_without_a_sign(
    import_rows, as_researcher, strengths, listed, on_its_page
):
    judged = [{"a": "a", "b": "b", "strength": each, "rater": f"r{each}"} for each in strengths]
    rows = [row("e1", responses=[{"id": "a", "text": "x"}, {"id": "b", "text": "y"}], preferences=judged)]
    version = import_rows(rows, format="touchstone").version
    words = lambda url: " ".join(strip_tags(as_researcher.get(url).content.decode()).split())  # noqa: E731
    shown = words(f"/datasets/{version.dataset_id}/versions/1")
    assert f" {listed} 2 " in shown, "the label, before the number of responses"
    assert on_its_page in words(f"/examples/{Example.objects.get().pk}")
