"""Leaderboards compare judges that were asked in the same way about the same items. Equal scores share a place."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from tests.team import ApiClient
from webapp.evaluation.launch import services
from webapp.evaluation.leaderboards import boards as leaders
from webapp.evaluation.models import Case
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running

from .conftest import as_file

pytestmark = pytest.mark.django_db


def lines(judge: str, sides: dict[str, tuple]) -> list[dict]:
    """{pair: (given, swapped)}, or (given,) for a pair that was asked once. The first response is right each time."""
    found = []
    for pair, verdicts in sides.items():
        asked = dict(zip(("given", "swapped"), verdicts, strict=False))
        found.append({"judge": judge, "pair": pair, "group": "g", "label": "A", **asked})
    return found


RIGHT, WRONG, ONCE = ("A", "B"), ("B", "A"), ("A",)
PAIRS = [f"p{n}" for n in range(6)]


@pytest.fixture
def measured(team):
    """Evaluates recorded lines, and returns the finished evaluation."""

    def _measured(*judges: list[dict]):
        recording = recordings.store_recording(
            team.researcher, "v.jsonl", as_file([row for each in judges for row in each])
        )
        made = services.create(team.researcher, recipe="judge_audit", config={}, recording=recording, dataset=None)
        running.run(made.pk)
        made.refresh_from_db()
        assert made.state == "finished", made.problem
        return made

    return _measured


def places(team, made, protocol: str = "both"):
    found = leaders.board(team.workspace.pk, f"{made.benchmark}-{protocol}")
    return [(row.name, row.place, row.shared) for row in found.rows]


def test_a_judge_asked_once_is_never_ranked_with_one_asked_in_both_orders(team, measured):
    both = {pair: RIGHT if n < 4 else ("A", "A") for n, pair in enumerate(PAIRS)}
    made = measured(lines("careful", both), lines("once", dict.fromkeys(PAIRS, ONCE)))
    assert places(team, made) == [("careful", 1, False)]
    assert places(team, made, "given") == [("once", 1, False)]
    assert made.results["headline"]["label"] == "Accuracy of careful"
    assert not [block for block in made.results["blocks"] if block["title"].startswith("Against")]


def test_each_protocol_is_tested_within_itself(team, measured):
    made = measured(
        lines("a", dict.fromkeys(PAIRS, RIGHT)),
        lines("b", dict.fromkeys(PAIRS, WRONG)),
        lines("c", dict.fromkeys(PAIRS, ONCE)),
        lines("d", dict.fromkeys(PAIRS, ("B",))),
    )
    against = [block for block in made.results["blocks"] if block["title"].startswith("Against")]
    assert [(each["title"], [row[0]["text"] for row in each["rows"]]) for each in against] == [
        ("Against a", ["b"]),
        ("Against c", ["d"]),
    ]
    [table] = [block for block in made.results["blocks"] if block["title"] == "Right, and whichever comes first"]
    asked = [(row[0]["text"], row[1]["text"]) for row in table["rows"]]
    assert asked == [(n, "in both orders") for n in "ab"] + [(n, "once, in the given order") for n in "cd"]


def test_a_judge_asked_half_of_it_once_stands_apart_and_is_compared_where_it_was_asked_alike(team, measured):
    mixed = {pair: RIGHT if n < 3 else ONCE for n, pair in enumerate(PAIRS)}
    made = measured(lines("mixed", mixed), lines("careful", dict.fromkeys(PAIRS, RIGHT)))
    assert places(team, made) == [("careful", 1, False)] and places(team, made, "mixed") == [("mixed", 1, False)]


def test_equal_scores_share_a_place(team, measured):
    half = {pair: RIGHT if n < 3 else WRONG for n, pair in enumerate(PAIRS)}
    made = measured(*(lines(name, half) for name in "ab"), lines("c", dict.fromkeys(PAIRS, WRONG)))
    assert places(team, made) == [("a", 1, True), ("b", 1, True), ("c", 3, False)]
    page_of = leaders.boards(team.workspace.pk)[0]
    assert [row.name for row in page_of.first] == ["a", "b"]


def test_what_was_measured_on_other_items_has_no_place(team, measured, as_researcher):
    all_right = dict.fromkeys(PAIRS, RIGHT)
    few = dict.fromkeys(PAIRS[:2], RIGHT)
    made = measured(lines("a", all_right), lines("b", {**all_right, "p0": WRONG}), lines("lucky", few))
    assert places(team, made) == [("a", 1, False), ("b", 2, False), ("lucky", None, False)]
    told = ApiClient(team.reviewer).get(f"/leaderboards/{made.benchmark}-both").json()["rows"][-1]
    assert told["unlike"] == "measured on 2 items, most rows on 6" and told["place"] is None
    page = as_researcher.get(f"/leaderboards/{made.benchmark}-both").content.decode()
    assert 'class="unlike"' in page and "Measured on 2 items, most rows on 6" in page


def test_as_many_but_other_items_are_unlike_too(team, measured):
    six = dict.fromkeys(PAIRS, RIGHT)
    other = dict.fromkeys([*PAIRS[1:], "p9"], RIGHT)
    made = measured(lines("a", six), lines("b", six), lines("other", other))
    row = leaders.board(team.workspace.pk, f"{made.benchmark}-both").rows[-1]
    assert (row.name, row.place, row.unlike) == ("other", None, "measured on 6 items that are not those of most rows")


def test_the_page_says_how_all_were_asked_and_leads_to_the_others(team, measured, as_researcher):
    made = measured(lines("a", dict.fromkeys(PAIRS, RIGHT)), lines("once", dict.fromkeys(PAIRS, ONCE)))
    page = as_researcher.get(f"/leaderboards/{made.benchmark}-both").content.decode()
    assert "asked in both orders" in page and f"/leaderboards/{made.benchmark}-given" in page and ">once<" not in page
    listed = ApiClient(team.reviewer).get("/leaderboards").json()["items"]
    assert {each["benchmark"] for each in listed} == {f"{made.benchmark}-both", f"{made.benchmark}-given"}
    assert as_researcher.get(f"/leaderboards/{made.benchmark}").status_code == 200
    assert as_researcher.get(f"/leaderboards/{made.benchmark}-swapped").status_code == 404
    list_page = as_researcher.get("/leaderboards").content.decode()
    assert f"/leaderboards/{made.benchmark}-given" in list_page


def test_evaluations_of_before_get_the_protocol_that_their_cases_tell(team, measured):
    mixed = {pair: RIGHT if n < 3 else ONCE for n, pair in enumerate(PAIRS)}
    made = measured(
        lines("a", dict.fromkeys(PAIRS, RIGHT)), lines("once", dict.fromkeys(PAIRS, ONCE)), lines("mixed", mixed)
    )
    wanted = [dict(each) for each in made.results["entries"]]
    for entry in made.results["entries"]:
        for name in ("protocol", "items", "item_count"):
            del entry[name]
    made.save()
    assert Case.objects.filter(evaluation=made).count() == 18
    step = import_module("webapp.evaluation.migrations.0002_entries_say_their_protocol")
    step.fill(apps, SimpleNamespace(connection=connection))
    made.refresh_from_db()
    assert made.results["entries"] == wanted
