"""The model that people prefer, compared with counts by hand."""

import pytest

from tests.team import ApiClient, browser
from trainer.contracts import Example as ExampleRecord
from trainer.contracts import Message, Response
from webapp.annotation.agreement.wins import wins
from webapp.annotation.projects import services as projects
from webapp.annotation.projects import task_services
from webapp.annotation.work import queue
from webapp.datasets.versions import services as datasets

SAID = {  # the strengths of the first and the second person in favour of the model "tuned"; None: cannot assess
    "t0": (2, 3),
    "t1": (1, -1),
    "t2": (0, 3),
    "t3": (-3, -2),
    "t4": (None, None),
}


@pytest.fixture
def project(team):
    """Two models answer five prompts. Which one has response `a` changes from prompt to prompt."""
    records = []
    for number, key in enumerate(SAID):
        names = ("base", "tuned") if number % 2 else ("tuned", "base")
        answers = tuple(Response(id=i, text=f"{name} says", origin=name) for i, name in zip("ab", names, strict=True))
        records.append(ExampleRecord(key=key, prompt=(Message(role="user", content=key),), responses=answers))
    dataset = datasets.create_dataset(team.researcher, "tried")
    version = datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})
    project = projects.create(team.researcher, name="Tried", kind="pairwise", dataset=version)
    task_services.make(project.pk)
    return projects.set_state(team.researcher, project, "open")


def answer(team, project):
    for person, membership in enumerate((team.owner, team.reviewer)):
        for _ in SAID:
            (seat,) = queue.claim(membership, project)
            content = seat.task.example.content
            given = SAID[content["key"]][person]
            if given is None:
                queue.submit(membership, seat, {"verdict": "cannot_assess"})
                continue
            shown = [content["responses"][place]["origin"] for place in seat.order]
            towards_second = given if shown[1] == "tuned" else -given
            queue.submit(membership, seat, {"verdict": "compared", "strength": towards_second})


def test_tasks_are_averaged_over_people_and_what_is_missing_is_counted(team, project):
    assert wins(project) == []
    answer(team, project)
    (win,) = wins(project)
    # by task, the result of "tuned": 1, (1 + 0) / 2, (0.5 + 1) / 2, 0
    assert (win.first, win.second, win.rate.value) == ("tuned", "base", pytest.approx(2.25 / 4))
    assert (win.rate.n, win.rate.missing, win.won, win.tied, win.lost) == (4, 1, 4, 1, 3)
    assert 0 <= win.rate.low < 2.25 / 4 < win.rate.high <= 1


def test_a_pair_of_which_both_are_bad_counts_half_also_if_one_is_less_bad(team, project):
    for _ in range(2):
        (seat,) = queue.claim(team.owner, project)
        queue.submit(team.owner, seat, {"verdict": "both_bad", "strength": 3})
    (win,) = wins(project)
    assert (win.rate.value, win.won, win.tied, win.lost) == (0.5, 0, 2, 0)


def test_the_page_and_the_api_show_it_to_those_who_may_read(team, project):
    answer(team, project)
    page = browser(team.reviewer).get(f"/projects/{project.pk}/wins").content.decode()
    assert "Preferred models" in page and "56%" in page and "+ 1 not assessed" in page
    found = ApiClient(team.reviewer).get(f"/projects/{project.pk}/wins").json()["items"]
    assert found[0]["first"] == "tuned" and found[0]["rate"]["n"] == 4
    assert browser(team.annotator).get(f"/projects/{project.pk}/wins").status_code == 403
    assert browser(team.outsider).get(f"/projects/{project.pk}/wins").status_code == 404


def test_responses_that_say_nothing_of_their_writer_make_no_table(team, make_project):
    project = make_project()
    task_services.make(project.pk)
    (seat,) = queue.claim(team.owner, project)
    queue.submit(team.owner, seat, {"verdict": "compared", "strength": 1})
    assert wins(project) == []  # both responses are from one writer
