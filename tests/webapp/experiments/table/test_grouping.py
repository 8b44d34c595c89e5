"""Runs in groups: each run is in the groups of its values, and means and intervals over seeds are as by hand."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient
from webapp.accounts.models import User
from webapp.experiments import table_facts
from webapp.experiments.models import Run, RunTag
from webapp.experiments.table import grouping, views
from webapp.experiments.table.models import RunValue

pytestmark = pytest.mark.django_db
RATE = "config.optim.lr"


@pytest.fixture
def six(make):
    """Three seeds with one rate, two with another (one has no score), and a run without a rate."""
    runs = [make(f"a{seed}", seed=seed, lr=1e-5, scores=[score]) for seed, score in enumerate((0.1, 0.2, 0.6))]
    runs += [make(f"b{seed}", seed=seed, lr=1e-4, scores=[0.4] if seed else []) for seed in (0, 1)]
    bare = make("c", state="failed")
    RunValue.objects.filter(run=bare, column__path="optim.lr").delete()  # as of a run that another program logged
    return [*runs, bare]


def get_groups(api, **query):
    return api.get("/runs/table/groups", **{"by": RATE, "columns": "eval/score,config.seed", **query}).json()


def test_runs_with_one_value_are_a_group_with_mean_and_interval_over_seeds(api, six):
    told = get_groups(api, sort=RATE)
    assert [(row["value"], len(row["runs"])) for row in told["items"]] == [(1e-5, 3), (1e-4, 2), (None, 1)]
    first, second, third = told["items"]
    assert first["runs"] == [run.pk for run in reversed(six[:3])] and first["seeds"] == ["0", "1", "2"]
    mean = first["values"]["eval/score"]["mean"]
    # s = 0.2645751, s / sqrt(3) = 0.1527525, t(2) at 97.5% = 4.3026527
    assert (mean["value"], mean["n"]) == (pytest.approx(0.3), 3)
    assert (mean["low"], mean["high"]) == (pytest.approx(0.3 - 0.6572413), pytest.approx(0.3 + 0.6572413))
    assert first["values"]["config.seed"] == {"mean": None, "value": None, "different": 3}
    assert second["values"]["eval/score"]["mean"]["missing"] == 1
    assert third["values"]["eval/score"]["mean"] is None and third["states"] == {"failed": 1}
    assert not told["partial"]


def test_runs_of_one_seed_count_as_one(api, six, make):
    for again in range(3):
        make(f"a0 again {again}", seed=0, lr=1e-5, scores=[0.1 + 0.1 * again])
    mean = get_groups(api, sort=RATE)["items"][0]["values"]["eval/score"]["mean"]
    # seed 0 has 0.1, 0.1, 0.2, 0.3: mean 0.175; with 0.2 and 0.6 the mean is 0.325
    assert (mean["value"], mean["n"]) == (pytest.approx(0.325), 3)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("-created", [None, 1e-4, 1e-5]),
        ("created", [1e-5, 1e-4, None]),
        ("name", [1e-5, 1e-4, None]),
        ("-model", [None, 1e-4, 1e-5]),
        ("-eval/score", [1e-4, 1e-5, None]),
        ("eval/score", [1e-5, 1e-4, None]),
        (f"-{RATE}", [1e-4, 1e-5, None]),
    ],
)
def test_groups_are_in_the_order_of_their_mean_and_those_without_come_last(api, six, sort, order):
    found, cursor = [], None
    while True:
        told = get_groups(api, sort=sort, limit=1, **({"cursor": cursor} if cursor else {}))
        found += [row["value"] for row in told["items"]]
        cursor = told["next"]
        if cursor is None:
            break
    assert found == order
    assert [row["value"] for row in get_groups(api, sort=sort)["items"]] == order


@pytest.mark.parametrize("by", [RATE, "tag", "group", "state", "model", "by", "config.steps", "config.note"])
def test_the_query_of_a_group_finds_its_runs(api, six, make, by):
    RunTag.objects.bulk_create(RunTag(run=run, name=name) for run in six[:2] for name in ("good", "two words"))
    RunTag.objects.create(run=six[2], name="good")
    Run.objects.filter(pk=six[0].pk).update(group='of "quotes", and commas')
    told = get_groups(api, by=by, q="-name:c")
    assert told["items"] if by != "config.note" else "error" in told
    for row in told.get("items", []):
        found = api.get("/runs/table", q=row["query"]).json()["items"]
        assert [each["run"]["id"] for each in found] == row["runs"], row["query"]
    if by == "tag":
        assert {row["value"]: len(row["runs"]) for row in told["items"]} == {"good": 3, "two words": 2, None: 2}


def test_tags_are_in_their_own_order(api, six, as_researcher):
    RunTag.objects.bulk_create(RunTag(run=six[0], name=name) for name in ("good", "bad"))
    for sort, order in (("tag", ["bad", "good", None]), ("-tag", ["good", "bad", None])):
        assert [row["value"] for row in get_groups(api, by="tag", sort=sort)["items"]] == order
    shown = as_researcher.get("/experiments", {"group": "tag", "sort": "tag"})
    for _, link in shown.context["rows"]:
        assert as_researcher.get(f"/experiments/rows?{link}").status_code == 200
    assert api.get("/runs/table/groups", by="state", sort="tag").status_code == 422


def test_a_person_without_a_name_is_a_group_by_the_address(api, six):
    person = User.objects.get(pk=six[0].created_by_id)
    User.objects.filter(pk=person.pk).update(name="")
    (row,) = get_groups(api, by="by")["items"]
    assert (row["value"], len(row["runs"])) == (person.email, 6)
    found = api.get("/runs/table", q=row["query"]).json()["items"]
    assert [each["run"]["id"] for each in found] == row["runs"]


def test_a_group_that_no_query_finds_keeps_its_row_without_a_link(api, six, as_researcher):
    terms = " ".join(f"-name:x{place}" for place in range(30))  # as many as a query may have
    for query in (terms, f"-name:{'x' * 990}"):
        told = get_groups(api, q=query)["items"]
        assert [(row["query"], len(row["runs"])) for row in told] == [(None, 1), (None, 2), (None, 3)]
        text = as_researcher.get("/experiments", {"group": RATE, "q": query}).content.decode()
        assert text.count("is-group") == 3 and "data-unfold" not in text
    assert all(row["query"] for row in get_groups(api, q=terms.removesuffix(" -name:x29"))["items"])


def test_a_query_finds_runs_that_have_a_value(api, six):
    def found(query: str) -> list[str]:
        return sorted(row["run"]["name"] for row in api.get("/runs/table", q=query).json()["items"])

    assert found("has:eval/score") == ["a0", "a1", "a2", "b1"]
    assert found(f"-has:{RATE}") == ["c"]
    assert found("has:tag") == [] and found("has:tag,model -name:c") == ["a0", "a1", "a2", "b0", "b1"]
    answer = api.get("/runs/table", q="has:eval/scor")
    assert answer.status_code == 422 and "Did you mean eval/score?" in answer.json()["error"]["fields"][0]["message"]


def test_what_is_wrong_is_said_at_its_place(api, six, as_researcher):
    for query, where in (
        ({"by": "eval/score"}, "group"),
        ({"by": "config.nothing"}, "group"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "W1tb" * 1_000}, "cursor"),  # lists in lists, too deep to be read
    ):
        answer = api.get("/runs/table/groups", **{"by": RATE, **query})
        assert answer.status_code == 422 and answer.json()["error"]["fields"][0]["path"] == where
    shown = as_researcher.get("/experiments", {"group": "config.nothing"}, follow=True)
    assert "No run here has config.nothing." in shown.content.decode()


def test_groups_are_of_the_newest_runs_if_there_are_very_many(api, six, monkeypatch, as_researcher):
    monkeypatch.setattr(grouping, "MOST_RUNS", 3)
    told = get_groups(api)
    assert told["partial"] and sum(len(row["runs"]) for row in told["items"]) == 3
    shown = as_researcher.get("/experiments", {"group": RATE}).content.decode()
    assert "these are the groups of the newest 3" in shown


def test_runs_of_others_are_in_no_group(six, team):
    assert ApiClient(team.outsider).get("/runs/table/groups", by="state").json()["items"] == []
    assert ApiClient(team.annotator).get("/runs/table/groups", by="state").status_code == 403


def test_groups_cost_the_same_however_many_runs(api, six, make, team):
    def queries() -> int:
        with CaptureQueriesContext(connection) as done:
            get_groups(api, sort="-eval/score")
        return len(done)

    queries()
    before = queries()
    for seed in range(3):
        make(f"d{seed}", seed=seed, lr=10.0**-seed, scores=[0.1])
    assert queries() == before


def test_the_page_groups_unfolds_and_keeps_it_in_a_view(six, as_researcher, api):
    shown = as_researcher.get("/experiments", {"group": RATE, "columns": "state,eval/score"})
    assert [len(row.ids) for row, _ in shown.context["rows"]] == [1, 2, 3]
    text = shown.content.decode()
    assert "0.300" in text and "seeds 0, 1, 2" in text and "without a value" in text
    _, link = shown.context["rows"][2]
    rows = as_researcher.get(f"/experiments/rows?{link}").content.decode()
    assert rows.count("<tr ") == 3 and f'href="/runs/{six[0].pk}"' in rows
    assert as_researcher.get("/experiments/rows", {"q": "state:done"}).status_code == 404
    view = api.post("/runs/table/views", {"name": "Rates", "group": RATE}).json()
    assert view["group"] == RATE
    kept = as_researcher.get("/experiments", {"view": view["id"]})
    assert kept.context["layout"].group == RATE and len(kept.context["rows"]) == 3
    plain = as_researcher.get("/experiments", {"view": view["id"], "group": ""})
    assert len(plain.context["rows"]) == 6


def test_a_dash_stands_under_its_head(six, as_researcher):
    shown = as_researcher.get("/experiments", {"group": RATE, "columns": "state,step,result,curve,model,took"})
    heads = [not head["column"].is_text for head in shown.context["heads"]]
    assert heads == [False, True, True, False, False, True]
    for row in shown.content.decode().split('<tr class="is-group">')[1:]:
        cells = [" num" in opening or '"num' in opening for opening in re.findall(r"<td[^>]*>", row)[2:]]
        assert cells == heads, row


def test_a_group_shows_the_facts_that_all_its_runs_share(six, as_researcher, team):
    names = ("experiment", "recipe", "model", "dataset", "group", "by")
    Run.objects.filter(pk__in=[run.pk for run in six[:3]]).update(group="night")
    Run.objects.filter(pk__in=[run.pk for run in six[1:3]]).update(created_by=team.owner.user, recipe="sft")
    Run.objects.filter(pk=six[3].pk).update(group="day")
    Run.objects.filter(pk__in=[run.pk for run in six[4:]]).update(state="draft", dataset_version=None)
    shown = as_researcher.get("/experiments", {"group": RATE, "columns": ",".join(names), "sort": RATE})
    said = {}
    for row, _ in shown.context["rows"]:
        said[row.value] = {
            cell.column.name: f"{cell.differ} values" if cell.differ else cell.value for cell in row.cells
        }
    run = six[0]
    version = run.dataset_version
    alike = {
        "experiment": run.experiment.name,
        "model": run.model.name,
        "dataset": f"{version.dataset.name} v{version.number}",
    }
    person = team.researcher.user.name or team.researcher.user.email
    assert said[1e-5] == alike | {"recipe": "2 values", "group": "night", "by": "2 values"}
    assert said[1e-4] == alike | {
        "recipe": "policy",
        "dataset": "2 values",
        "group": "2 values",
        "by": person,
    }  # one of the two is in no group
    assert said[None] == alike | {"recipe": "policy", "dataset": "", "group": "", "by": person}
    text = shown.content.decode()
    assert text.count(f'title="{run.model.name}"') == 3 and "2 values" in text


def test_no_run_takes_less_than_no_time(six, as_researcher):
    for run, seconds in zip(six, (1, 60, 200), strict=False):
        fact = table_facts.Fact("run", table_facts.TOOK, number=seconds, low=seconds, high=seconds)
        table_facts.keep(run.experiment.workspace_id, run.pk, [fact])
    text = as_researcher.get("/experiments", {"group": RATE, "columns": "took"}).content.decode()
    assert "0 s to " in text and "-" not in re.search(r'<small class="muted">([^<]* to [^<]*)<', text)[1]


def test_no_head_seems_to_order_groups_that_it_does_not_order(six, as_researcher):
    def directions(sort: str) -> list[str]:
        shown = as_researcher.get("/experiments", {"group": RATE, "sort": sort, "columns": f"model,{RATE},eval/score"})
        return [head["direction"] for head in (shown.context["name_head"], *shown.context["heads"])]

    assert directions("name") == directions("-model") == ["none"] * 4
    assert directions(RATE) == ["none", "none", "ascending", "none"]
    assert directions("-eval/score") == ["none", "none", "none", "descending"]


def test_the_way_to_all_runs_of_a_group_keeps_the_order(six, as_researcher, monkeypatch):
    monkeypatch.setattr(views, "UNFOLDED", 2)
    shown = as_researcher.get("/experiments", {"group": RATE, "sort": "eval/score", "columns": "eval/score"})
    _, link = shown.context["rows"][0]
    text = as_researcher.get(f"/experiments/rows?{link}").content.decode()
    assert text.index(f"/runs/{six[0].pk}") < text.index(f"/runs/{six[1].pk}") and f"/runs/{six[2].pk}" not in text
    assert "sort=eval%2Fscore" in text and "All runs of this group" in text


def test_a_page_offers_few_of_very_many_paths_and_the_chosen_one(six, as_researcher, api, monkeypatch):
    def offered(**asked: str) -> list[str]:
        return [
            name for name in as_researcher.get("/experiments", asked).context["groups"] if name not in grouping.LABELS
        ]

    many = offered()
    assert RATE in many
    monkeypatch.setattr(grouping, "MOST_NAMES", 1)
    assert offered() == many[:1] and RATE not in many[:1]
    assert offered(group=RATE) == [many[0], RATE]
    assert len(get_groups(api)["items"]) == 3
