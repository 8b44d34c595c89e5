"""Charts of reports: round marks, a single point in the middle, intervals inside the frame."""

import re

import pytest

from webapp.evaluation.results import drawing


def curve(*points) -> str:
    listed = [{"x": x, "value": value, "low": low, "high": high, "n": 9} for x, value, low, high in points]
    return str(
        drawing.curve({"title": "T", "x": "items", "y": "accuracy", "series": [{"name": "s", "points": listed}]})
    )


def test_a_point_leads_to_its_cases_on_the_page_and_nowhere_in_a_file():
    point = {"x": 1.0, "value": 0.45, "low": 0.4, "high": 0.5, "n": 9, "tags": ["judge:a"]}
    block = {"title": "T", "x": "items", "y": "accuracy", "series": [{"name": "s", "points": [point]}]}
    page = str(drawing.curve(block, lambda tags: f"/cases?tag={tags[0]}"))
    assert 'href="/cases?tag=judge:a" aria-label="s: 0.45, its cases"' in page and 'role="group"' in page
    assert "href" not in str(drawing.curve(block)) and 'role="img"' in str(drawing.curve(block))
    cell = {"value": 0.5, "low": None, "high": None, "tags": ["judge:b"]}
    scatter = {"title": "T", "x": "a", "y": "b", "points": [{"name": "b", "x": cell, "y": cell}]}
    assert 'href="/cases?tag=judge:b"' in str(drawing.scatter(scatter, lambda tags: f"/cases?tag={tags[0]}"))


def marks(svg: str) -> list[float]:
    """The marks of the upward axis."""
    return [float(each) for each in re.findall(r'text-anchor="end">([-\d.e]+)<', svg)]


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(0.544, 0.801, [0.5, 0.6, 0.7, 0.8, 0.9]), (0.0, 1.0, [0, 0.25, 0.5, 0.75, 1]), (-3, 8, [-5, 0, 5, 10])],
)
def test_marks_are_round_and_hold_the_intervals(low, high, wanted):
    found = marks(curve((1, (low + high) / 2, low, high), (2, (low + high) / 2, low, high)))
    assert found == pytest.approx(wanted)


def test_values_that_are_all_the_same_still_have_an_axis():
    assert len(marks(curve((1, 0.5, None, None), (2, 0.5, None, None)))) > 1
    assert len(marks(curve((1, 0.0, None, None)))) > 1


def test_shares_against_shares_have_the_whole_square_and_its_diagonal():
    block = {"title": "T", "x": "confidence", "y": "right", "diagonal": True}
    point = {"x": 1.0, "value": 0.45, "low": 0.4, "high": 0.5, "n": 9}  # all known values are the same
    svg = str(drawing.curve({**block, "series": [{"name": "s", "points": [point]}]}))
    left, right, top, bottom = (
        f"{each:.1f}"
        for each in (
            drawing.LEFT,
            drawing.WIDTH - drawing.RIGHT,
            drawing.TOP,
            drawing.HEIGHT - drawing.BOTTOM,
        )
    )
    assert f'class="ideal" x1="{left}" y1="{bottom}" x2="{right}" y2="{top}"' in svg and f'cx="{right}"' in svg
    assert marks(svg) == [0, 0.25, 0.5, 0.75, 1]


def test_a_point_alone_stands_in_the_middle():
    (x,) = re.findall(r'<circle cx="([\d.]+)"', curve((4, 0.5, 0.4, 0.6)))
    assert float(x) == pytest.approx((drawing.LEFT + drawing.WIDTH - drawing.RIGHT) / 2, abs=0.1)
