"""The metric of a sweep over two keys: it is drawn at trials and between them, and nowhere else."""

import math
import re

import pytest

from webapp.experiments.sweeps import contour, contour_picture, rounds
from webapp.experiments.sweeps.space import SweepAxis

from .conftest import finish, runs

RATE = SweepAxis("optim.lr", low=1e-4, high=1e-2, scale="log")
RANK = SweepAxis("model.lora.rank", values=(4, 8, 16))
SIDES = contour.numeric_axes([RATE, RANK])


def trials(*told):
    return [(n, {"optim.lr": lr, "model.lora.rank": rank}, value) for n, (lr, rank, value) in enumerate(told, 1)]


def test_only_keys_with_several_numbers_are_sides():
    axes = [
        RATE,
        RANK,
        SweepAxis("a", values=(True, False)),
        SweepAxis("b", values=("x", "y")),
        SweepAxis("c", values=(1,)),
    ]
    found = contour.numeric_axes([*axes, SweepAxis("d", values=(1e-4, 1e-3)), SweepAxis("e", values=(None, 2, 3))])
    assert list(found) == ["optim.lr", "model.lora.rank", "d"]
    assert [found[path].log for path in found] == [True, False, True]
    assert found["optim.lr"].share(1e-3) == pytest.approx(0.5) and found["optim.lr"].at(0.5) == pytest.approx(1e-3)


def test_a_plane_is_met_exactly_and_nothing_lies_outside_of_the_places():
    x, y = SIDES.values()
    made = contour.make_contour(x, y, trials((1e-4, 4, 0.0), (1e-2, 4, 1.0), (1e-4, 16, 2.0), (1e-3, 8, 0.5 + 2 / 3)))
    assert made.undefined == "" and len(made.surface) == contour.UP and len(made.surface[0]) == contour.ACROSS
    for row, values in enumerate(made.surface):
        for at, value in enumerate(values):
            across, up = (at + 0.5) / contour.ACROSS, (row + 0.5) / contour.UP
            if abs(across + up - 1) > 1e-6:  # otherwise on the edge of the triangle
                assert (value is None) == (across + up > 1)
            if value is not None:
                assert value == pytest.approx(across + 2 * up)


def test_places_are_means_of_their_trials():
    x, y = SIDES.values()
    made = contour.make_contour(x, y, trials((1e-3, 8, 0.2), (1e-3, 8, 0.6), (1e-4, 4, 0.1)))
    assert [(each.value, each.trials) for each in made.places] == [(0.1, (3,)), (pytest.approx(0.4), (1, 2))]
    assert made.surface == [] and "needs 4 trials" in made.undefined and made.undefined.endswith("there are 3.")


def test_places_on_one_line_have_nothing_between_them():
    x, y = SIDES.values()
    made = contour.make_contour(x, y, trials(*((1e-3, rank, 0.1) for rank in (4, 8, 16, 8))))
    assert made.surface == [] and "one line" in made.undefined


def test_the_picture_has_a_band_for_each_step_and_ranks_the_best():
    x, y = SIDES.values()
    corners = [(lr, rank, math.log10(lr) + rank) for lr in (1e-4, 1e-2) for rank in (4, 16)]
    drawn = contour_picture.drawn(contour.make_contour(x, y, trials(*corners)), higher=False)
    assert [band.number for band in drawn.bands] == [5, 4, 3, 2, 1, 0]
    covered = sum(
        (float(right) - float(left)) * (float(bottom) - float(top))
        for band in drawn.bands
        for left, top, right, bottom in re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H[\d.]+Z", band.path)
    )
    assert covered == pytest.approx((drawn.right - drawn.left) * (drawn.bottom - drawn.top), rel=1e-2)
    assert drawn.dots[-1].rank == 1 and drawn.dots[-1].title.startswith("0 at optim.lr 0.0001, model.lora.rank 4")
    flat = contour_picture.drawn(contour.make_contour(x, y, trials(*((a, b, 1.0) for a, b, _ in corners))), higher=True)
    assert [band.number for band in flat.bands] == [0]


def grid(sweep, lost=()):
    """Two rates by two temperatures, all finished. The second seed of the trials in `lost` has no value."""
    axes = [{"path": "optim.lr", "values": [1e-4, 1e-3]}, {"path": "rollout.temperature", "values": [0.5, 1.0]}]
    row = sweep(axes=axes, at_once=4)
    for trial in (1, 2, 3, 4):
        for seed, run in enumerate(runs(row, trial)):
            finish(run, None if trial in lost and seed else 0.1 * trial, row.metric)
    rounds.advance(row.pk)
    return row


@pytest.fixture
def unfinished(sweep):
    return grid(sweep, lost=[4])


def test_the_api_gives_places_and_surface(unfinished, api):
    told = api.get(f"/sweeps/{unfinished.pk}/contour").json()
    assert (told["x"]["path"], told["y"]["path"]) == ("optim.lr", "rollout.temperature")
    assert [each["trials"] for each in told["places"]] == [[1], [2], [3]] and told["surface"] == []
    assert told["undefined"].endswith("there are 3.")
    turned = api.get(f"/sweeps/{unfinished.pk}/contour", x="rollout.temperature").json()
    assert (turned["x"]["path"], turned["y"]["path"]) == ("rollout.temperature", "optim.lr")


def test_the_surface_is_between_the_corners_of_a_grid(sweep, api):
    told = api.get(f"/sweeps/{grid(sweep).pk}/contour").json()
    assert told["undefined"] == "" and told["x"]["log"] and not told["y"]["log"]
    values = [value for row in told["surface"] for value in row]
    assert len(values) == contour.ACROSS * contour.UP and None not in values
    assert 0.1 < min(values) < 0.11 and 0.39 < max(values) < 0.4
    assert told["surface"][0][-1] > told["surface"][-1][0]  # trial 3 is another rate, trial 2 another temperature


def test_wrong_keys_are_told_at_their_fields(unfinished, api):
    answer = api.get(f"/sweeps/{unfinished.pk}/contour", x="optim.speed")
    assert answer.status_code == 422 and answer.json()["error"]["fields"][0]["path"] == "x"
    answer = api.get(f"/sweeps/{unfinished.pk}/contour", x="optim.lr", y="optim.lr")
    assert [each["path"] for each in answer.json()["error"]["fields"]] == ["y"]


def test_a_sweep_of_one_key_has_no_contour(sweep, api, client, team):
    row = sweep()
    assert api.get(f"/sweeps/{row.pk}/contour").status_code == 409
    client.force_login(team.researcher.user)
    assert "Two keys together" not in client.get(f"/experiments/sweeps/{row.pk}").content.decode()


def test_the_page_says_why_there_is_no_surface_and_keeps_the_keys(unfinished, client, team):
    client.force_login(team.researcher.user)
    page = client.get(
        f"/experiments/sweeps/{unfinished.pk}", {"x": "rollout.temperature", "y": "nonsense"}
    ).content.decode()
    assert "A surface needs 4 trials with a value for every seed; there are 3." in page
    assert '<option value="rollout.temperature" selected>' in page.split('name="y"')[0]
    assert page.split('id="contour-table"')[1].split("</table>")[0].count("<tr>") == 4
