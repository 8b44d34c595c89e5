"""A sweep that starts from an earlier sweep: the form with its keys and numbers, and the same by the API."""

import json

import pytest

from tests.team import browser
from webapp.experiments.models import Sweep
from webapp.experiments.sweeps import bases, rounds
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import services as promotion

from ..conftest import swap_names
from .conftest import LOSS, finish, runs

MIXED = [
    {"path": "optim.lr", "low": 1e-5, "high": 1e-3, "scale": "log"},
    {"path": "rollout.truncated", "values": ["train", "mask"]},
    {"path": "model.lora.rank", "low": 2, "high": 8, "scale": "linear"},
]


@pytest.fixture
def earlier(sweep) -> Sweep:
    return sweep(
        axes=MIXED, method="random", trials=5, seeds=3, at_once=4, seed=7, first_rung=2, factor=2, better="lower"
    )


def search(row: Sweep) -> dict[str, object]:
    named = (
        "recipe",
        "config",
        "dataset",
        "version",
        "axes",
        "method",
        "metric",
        "higher",
        "seeds",
        "wanted",
        "at_once",
    )
    return {name: getattr(row, name) for name in (*named, "seed", "first_rung", "factor", "together", "experiment_id")}


def test_the_form_has_everything_of_the_earlier_sweep_and_launches_it_again(team, earlier):
    client = browser(team.researcher)
    page = client.get(f"/experiments/sweeps/{earlier.pk}/again")
    form = page.context["form"]
    assert [row.text for row in form.rows] == ["1e-05 to 0.001", "train, mask", "2 to 8"]
    assert form.problems == {} and form.trials == 5 and form.runs == 15  # it is checked before anything is changed
    sent = {f"{name}.{row.place}": text for row in form.rows for name, text in
            (("path", row.path), ("values", row.text), ("scale", row.scale), ("points", row.points))}  # fmt: skip
    sent |= form.given | {"rows": "3", "key": form.key, "action": "launch"}
    assert client.post(f"/experiments/sweeps/{earlier.pk}/again", sent).status_code == 302
    made = Sweep.objects.exclude(pk=earlier.pk).get()
    assert search(made) == search(earlier) and made.source == earlier.source
    assert made.state == "running" and not made.trials.exists()


def test_the_form_names_the_steps_of_comparison_if_all_trials_have_the_same_length(team, sweep, earlier):
    client = browser(team.researcher)
    assert "Compared at step 2 of 4." in client.get(f"/experiments/sweeps/{earlier.pk}/again").content.decode()
    axes = [{"path": "steps", "values": [3, 9]}]
    other = sweep(axes=axes, first_rung=1, factor=2, experiment="lengths")
    assert "Compared at step" not in client.get(f"/experiments/sweeps/{other.pk}/again").content.decode()


def test_the_source_may_be_gone(team, earlier):
    earlier.source.delete()
    form = browser(team.researcher).get(f"/experiments/sweeps/{earlier.pk}/again").context["form"]
    assert form.problems == {} and form.base.name == earlier.name


def post(team, **asked):
    client = browser(team.researcher)
    return client.post("/api/v1/sweeps", json.dumps(asked), content_type="application/json")


def test_a_script_names_only_what_it_changes(team, earlier):
    answer = post(team, sweep=earlier.pk, seeds=2, config={"optim": {"lr": 2e-5}})
    assert answer.status_code == 201, answer.content
    made = Sweep.objects.get(pk=answer.json()["id"])
    changed = {name for name, value in search(made).items() if value != search(earlier)[name]}
    assert changed == {"seeds", "config"} and made.seeds == 2 and made.config["optim"]["lr"] == 2e-5
    other = post(team, sweep=earlier.pk, axes=[{"path": "optim.lr", "values": [1e-4]}]).json()
    assert [axis["path"] for axis in other["axes"]] == ["optim.lr"] and other["method"] == "random"


def refused(answer) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [field["path"] for field in answer.json()["error"]["fields"]]


def test_a_sweep_starts_from_one_thing_with_a_key(team, run, earlier):
    assert refused(post(team, sweep=earlier.pk, run=run.pk)) == ["sweep"]
    assert refused(post(team, sweep=earlier.pk, recipe="sft")) == ["recipe"]
    assert refused(post(team, run=run.pk)) == ["axes"]
    assert post(team, sweep=earlier.pk + 1000).status_code == 404
    assert Sweep.objects.count() == 1


def test_later_trials_begin_with_the_model_that_was_chosen_though_another_has_its_name(sweep, model):
    row = sweep(at_once=1, seeds=1)
    swap_names(model)
    (first,) = runs(row, 1)
    finish(first, 0.5, LOSS)
    rounds.advance(row.pk)
    (second,) = runs(row, 2)
    assert second.model == first.model == model and second.config["model"]["name"] == "older"


def test_models_that_are_values_of_a_key_stay_those_that_were_chosen(team, sweep, model):
    second = RegisteredModel.objects.create(workspace=team.workspace, name="second", source="local", path="/models/2")
    promotion.move(team.researcher, "champion", second)
    row = sweep(axes=[{"path": "model.name", "values": [model.name, "@champion"]}], at_once=1, seeds=1)
    promotion.move(team.researcher, "champion", model)
    swap_names(second)
    (first,) = runs(row, 1)
    finish(first, 0.5, LOSS)
    rounds.advance(row.pk)
    assert [runs(row, number)[0].model for number in (1, 2)] == [model, second]


def test_a_sweep_that_starts_from_one_with_a_renamed_model_has_its_name_of_today(sweep, model):
    row = sweep()
    swap_names(model)
    assert bases.of_sweep(row).config["model"]["name"] == "older"
