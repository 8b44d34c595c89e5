"""A page of ours is the path of a page of this installation, and nothing else."""

import pytest

from webapp.core.requests.own_pages import own_page


@pytest.mark.parametrize("target", ["/", "/runs/3?step=4#group", "/settings/share-links"])
def test_a_path_is_a_page_of_ours(rf, target):
    assert own_page(rf.get("/"), target) == target


@pytest.mark.parametrize(
    "target",
    [
        None,
        "",
        "share_links",
        "https://evil.example/",
        "//evil.example/",
        "///evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "javascript:alert(1)",
        "http://testserver/runs",
        " /runs",
    ],
)
def test_anything_else_is_no_page_of_ours(rf, target):
    assert own_page(rf.get("/"), target) == ""
