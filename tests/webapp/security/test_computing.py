"""Computations on texts that people send take little time for any text. Limits count people and seconds."""

import time
from dataclasses import replace

import pytest

from tests.team import ApiClient, browser
from tests.timeouts import SECONDS
from tests.webapp.annotation.seed import make_project, pair
from trainer.rubrics.structure import compound
from webapp.annotation.work import rubric_trial
from webapp.core.background import sandbox
from webapp.core.requests import limits
from webapp.core.text.markdown import MAX_CHARACTERS, line, markdown

pytestmark = pytest.mark.django_db
SLOW = {"name": "regex", "args": {"pattern": "(a|aa)+$"}}
ENDLESS = "a" * 1_000 + "!"
RUBRIC = {"criteria": [{"id": f"c{n}", "text": f"Check {n}.", "points": 1, "verifier": SLOW} for n in range(100)]}


def test_a_rubric_of_slow_patterns_takes_no_longer_than_its_time(team, monkeypatch):
    """A hundred patterns on 26 texts took eleven minutes within the limits of the schema. The process also has a limit, in case this one
    fails; a busy machine would reach it.
    """
    monkeypatch.setattr(rubric_trial, "LIMITS", replace(rubric_trial.LIMITS, seconds=SECONDS))
    script = ApiClient(team.annotator)
    script.post("/rubrics/check", {"criteria": []})  # so that the fork server is there
    began = time.monotonic()
    answer = script.post(
        "/rubrics/stress",
        {"rubric": RUBRIC, "responses": [{"letter": chr(65 + n), "text": ENDLESS} for n in range(26)]},
    )
    assert answer.status_code == 200 and time.monotonic() - began < SECONDS
    notes = [each["verdicts"]["Z"] for each in answer.json()["criteria"]]
    assert notes[-1] == {"met": None, "note": "not tried: the criteria and texts before it took all the time there was"}


def test_a_submission_stands_where_its_stress_test_takes_too_much(team, monkeypatch):
    def exceeded(*args, **kwargs):
        raise sandbox.Exceeded("takes longer than 3 s")

    monkeypatch.setattr(sandbox, "call", exceeded)
    project = make_project(team.researcher, [pair()], kind="rubric", people=[team.annotator])
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{project.id}/claim", {"hold": 1}).json()["items"][0]["id"]
    content = {"rubric": {"criteria": RUBRIC["criteria"][:3]}}
    answer = script.post(f"/assignments/{seat}/submit", {"content": content})
    assert (answer.status_code, answer.json()["stress"]) == (200, None)
    answer = script.post("/rubrics/stress", {**content, "responses": [{"letter": "A", "text": "a"}]})
    assert answer.json()["error"]["fields"][0]["path"] == "responses"


@pytest.mark.parametrize("mark", ["“", "《", "「", "(", '"a', "`"])
def test_marks_that_do_not_close_are_read_once(mark):
    began = time.process_time()
    compound(mark * 100_000)
    assert time.process_time() - began < 0.5


def test_a_long_rubric_is_not_checked(team):
    answer = ApiClient(team.annotator).post("/rubrics/check", {"criteria": [{"text": "a" * 20_000}] * 11})
    assert (answer.status_code, answer.json()["error"]["fields"][0]["path"]) == (422, "criteria")


@pytest.mark.parametrize("said", ["[", "![", "[a](", "**a ", "_*", "$a ", "> ", "- a\n", "| a ", "[a]: b\n", "`"])
def test_markdown_of_a_book_takes_a_moment(said):
    """190 KB of brackets took twelve seconds."""
    text = said * (190_000 // len(said))
    began = time.process_time()
    markdown(text)
    line(text)
    assert time.process_time() - began < 3


def test_a_long_text_is_cut_between_blocks_and_looks_the_same():
    blocks = [
        "# Title",
        "1. one\n\n   more of it\n\n2. two",
        "```py\nx = '''\n\n# no heading\n'''\n```",
        "> said\n\nand **done**",
    ]
    whole = "\n\n".join(blocks * 400)
    assert 20_000 < len(whole) < MAX_CHARACTERS
    assert markdown(whole).count("<h1") == 400 and markdown(whole).count("<pre>") == 400
    assert markdown(whole) == "".join(markdown("\n\n".join(blocks) + "\n") for _ in range(400))
    code = "```\n" + "x = 1\n\n" * 5_000 + "```\n\n**after**"
    assert markdown(code).count("<pre>") == 1 and markdown(code).endswith("<strong>after</strong></p>\n")


def test_seconds_are_counted_by_person_and_not_by_request(team, monkeypatch):
    monkeypatch.setattr(limits, "COMPUTING_S", 0.001)
    first, second = ApiClient(team.annotator), ApiClient(team.annotator)  # two tokens of one person
    assert first.post("/rubrics/check", {"criteria": [{"text": "Is warm."}]}).status_code == 200
    refused = second.post("/rubrics/check", {"criteria": [{"text": "Is warm."}]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert ApiClient(team.reviewer).post("/rubrics/check", {"criteria": []}).status_code == 200
    page = browser(team.annotator).post("/verifiers/word_count/try", {"args": '{"max": 3}', "text": "a"})
    assert page.status_code == 429


def test_requests_are_counted_by_person_whatever_their_token(team, monkeypatch):
    monkeypatch.setattr("webapp.accounts.authentication.credentials.REQUESTS_PER_MINUTE", 2)
    answers = [ApiClient(team.annotator).get("/me").status_code for _ in range(3)]
    assert answers == [200, 200, 429]
    assert ApiClient(team.reviewer).get("/me").status_code == 200
