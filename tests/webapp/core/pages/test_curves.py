"""Curves between boxes: level where they leave one box and come to the next."""

from webapp.core.pages.curves import curve


def test_a_curve_leaves_to_the_right_and_comes_from_the_left():
    assert curve((10, 20), (110, 60.5), 30) == "M10 20C40 20 80 60.5 110 60.5"
