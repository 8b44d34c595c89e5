"""The graph around a row: boxes at their places, many rows of a kind as one, and as many statements for many rows as for few."""

from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient, browser
from webapp.accounts.tokens.services import create_token
from webapp.experiments.models import RunSlot
from webapp.inference.models import RegisteredModel
from webapp.lineage import edges
from webapp.lineage import graph as graphs
from webapp.lineage.drawing import HEIGHT, WIDTH, draw_graph
from webapp.lineage.graph import surroundings

from .test_lineage import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(team) -> World:
    return World(team)


def drawn_graph(world, start, levels=2, named=True):
    """{(column, name)} and {(name above, name below)}."""
    made = draw_graph(world.team.workspace.pk, surroundings(world.team.workspace.pk, start, levels), named=named)
    lines = {(line.above.name, line.below.name) for line in made.lines}
    return {(box.column, box.name) for box in made.boxes}, lines, made


def test_the_start_is_between_what_it_rests_on_and_what_was_made_of_it(world):
    boxes, lines, _ = drawn_graph(world, ("run", world.trained.pk), 1)
    assert boxes == {(-1, str(world.version)), (-1, "base"), (0, "e: run 1"), (1, "reward")}
    assert lines == {(str(world.version), "e: run 1"), ("base", "e: run 1"), ("e: run 1", "reward")}


def test_a_row_stands_behind_all_that_it_rests_on_and_no_line_leads_back(world):
    boxes, lines, made = drawn_graph(world, ("model", world.base.pk), 4)
    columns = {name: column for column, name in boxes}
    assert columns["e: run 1"] < columns["reward"] < columns["j v1"] < columns["e: run 2"] < columns["policy"]
    assert all(line.above.x + WIDTH < line.below.x for line in made.lines)
    assert ("base", "reward") in lines and ("What we saw") in columns


def test_boxes_with_the_same_name_have_their_numbers(world):
    for _ in range(2):
        world.evaluated({"judges": [{"version": world.judge.pk}]})
    _, _, made = drawn_graph(world, ("judge", world.judge.pk), 1)
    boxes = [box for box in made.boxes if box.kind.name == "evaluation"]
    assert len(boxes) > 1 and all(box.note == f"evaluation {box.nodes[0][1]}" for box in boxes)
    assert [box.note for box in made.boxes if box.kind.name == "model"] == ["model"]


def test_people_stand_with_their_answers(world):
    boxes, _, _ = drawn_graph(world, ("publication", world.publication.pk), 1)
    assert (-1, "Anna") in boxes and (-1, "Person 2") in boxes
    boxes, _, made = drawn_graph(world, ("publication", world.publication.pk), 1, named=False)
    assert (-1, "2 answers by 2 people") in boxes and not [box for box in made.boxes if box.name == "Anna"]
    assert {box.url for box in made.boxes if box.kind.name == "person"} == {""}


def test_many_rows_of_a_kind_are_one_box(world):
    for number in range(20):
        world.output(world.run("policy", world.version), f"m{number}")
    boxes, lines, made = drawn_graph(world, ("version", world.version.pk), 2)
    assert (1, "21 runs") in boxes and (2, "20 models") not in boxes and (2, "21 models") in boxes
    (line,) = [line for line in made.lines if (line.above.name, line.below.name) == ("21 runs", "21 models")]
    assert line.count == 21 and {box.y % 1 for box in made.boxes} == {0}
    places = [(box.x, box.y) for box in made.boxes]
    assert len(set(places)) == len(places) and made.height >= HEIGHT


def test_a_graph_is_bounded_and_says_so(world, monkeypatch):
    for _ in range(6):
        world.run("policy", world.version)
    monkeypatch.setattr(graphs, "MOST_FOUND", 5)
    assert not drawn_graph(world, ("version", world.version.pk))[2].whole
    monkeypatch.setattr(graphs, "MOST_FOUND", 2000)
    monkeypatch.setattr(graphs, "MOST_FOLLOWED", 3)
    assert not drawn_graph(world, ("version", world.version.pk))[2].whole


def test_a_run_that_has_a_model_in_two_places_counts_once_where_a_graph_is_bounded(world, monkeypatch):
    runs = [world.run("policy", world.version) for _ in range(4)]
    teacher = RegisteredModel.objects.create(workspace=world.team.workspace, name="t", source="hub", path="o/t")
    for run in runs:
        RunSlot.objects.create(run=run, role="teacher", path="teacher.name", model=teacher)
        RunSlot.objects.create(run=run, role="reference", path="reference.name", model=teacher)
    monkeypatch.setattr(graphs, "MOST_FOUND", 4)
    found = surroundings(world.team.workspace.pk, ("model", teacher.pk), 1)
    assert found.whole and found.ids["run"] == {run.pk for run in runs}


def test_a_graph_takes_of_each_relation_no_more_than_it_shows():
    """From a model with which all runs begin, it would otherwise read all runs and compare them, to show 2,000."""
    for way in ("up", "down"):
        found = edges.steps(way, 7).split("\nUNION ALL ")
        assert len(found) == sum(way in each.ways for each in edges.EDGES)
        assert all(each.endswith(" LIMIT 7)") for each in found)


def test_an_example_has_its_versions_beside_it(world):
    example = world.tasks[0].example
    boxes, lines, _ = drawn_graph(world, ("example", example.pk), 2)
    assert (1, str(world.version)) in boxes and any(name == "e: run 1" for _, name in boxes)


def test_the_page_draws_an_image_that_can_be_read_and_has_no_inline_style(world):
    shown = browser(world.team.researcher).get(f"/lineage/run/{world.policy.pk}/graph?steps=4").content.decode()
    picture = shown[shown.index("<svg width") : shown.index("</svg>\n</div>") + 6]
    assert "style=" not in picture and picture.count("foreignObject") == 2 * picture.count('class="lineage-box"')
    ElementTree.fromstring(picture.replace("data-many>", ">").replace("data-many", ""))  # noqa: S314  our own page
    assert "The same as a list" in shown and f'href="/lineage/judge/{world.judge.pk}/graph"' in shown
    page = browser(world.team.researcher)
    assert page.get(f"/lineage/run/{world.policy.pk}/graph?steps=9").status_code == 404
    assert browser(world.team.outsider).get(f"/lineage/run/{world.policy.pk}/graph").status_code == 404
    assert browser(world.team.annotator).get(f"/lineage/run/{world.policy.pk}/graph").status_code == 403


def test_the_page_asks_as_much_for_many_rows_as_for_few(world):
    page, address = browser(world.team.researcher), f"/lineage/version/{world.version.pk}/graph"

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert page.get(address).status_code == 200
        return len(queries)

    page.get(address)
    few = asked()
    for number in range(20):
        world.output(world.run("policy", world.version), f"m{number}")
    assert asked() <= few


def test_the_api_has_boxes_and_lines_and_names_nobody_to_a_token_for_runs(world):
    told = ApiClient(world.team.researcher).get(f"/lineage/publication/{world.publication.pk}/graph?steps=1").json()
    names = [box["name"] for box in told["boxes"]]
    assert "Anna" in names and told["whole"]
    line = next(line for line in told["lines"] if names[line["above"]] == "Anna")
    assert told["boxes"][line["below"]]["id"] == world.publication.pk
    _, secret = create_token(world.team.owner, "runs", rights={"experiments": "read"})
    client = Client(headers={"authorization": f"Bearer {secret}"})
    told = client.get(f"/api/v1/lineage/publication/{world.publication.pk}/graph").json()
    assert "Anna" not in [box["name"] for box in told["boxes"]]
    assert ApiClient(world.team.reviewer).get(f"/lineage/run/{world.policy.pk}/graph?steps=9").status_code == 422
