"""Static files are those from the start of the process, even if the tree changes later."""

import os
from pathlib import Path

import pytest
from django.test import Client

OLD = "export const old = 1;\n"


@pytest.fixture
def script(settings, tmp_path) -> Path:
    """A script among the static files of a server that has just started."""
    path = tmp_path / "site" / "js" / "some.js"
    path.parent.mkdir(parents=True)
    path.write_text(OLD)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    settings.STATICFILES_DIRS, settings.WHITENOISE_AUTOREFRESH = [tmp_path / "site"], False
    return path


@pytest.fixture
def browser(script):
    client = Client()
    client.get("/healthz")  # the first request makes the middleware
    return client


@pytest.mark.parametrize("new", ["export const longer = 'than it was before';\n", "short\n", None])
def test_a_file_that_changes_or_goes_under_a_running_server_stays_as_it_was(new, script, browser):
    if new is None:
        script.unlink()
    else:
        script.write_text(new)
    response = browser.get("/static/js/some.js")
    assert (response.status_code, response.content) == (200, OLD.encode())
    assert response["Content-Length"] == str(len(OLD))


def test_what_browsers_keep_is_said_as_before(browser):
    response = browser.get("/static/js/some.js")
    assert response["Cache-Control"] == "max-age=60, public"
    assert response["Last-Modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert response["Content-Type"].startswith("text/javascript")
    assert "Access-Control-Allow-Origin" not in response
    again = browser.get("/static/js/some.js", headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304 and not again.has_header("Content-Length")
    dated = browser.get("/static/js/some.js", headers={"If-Modified-Since": response["Last-Modified"]})
    assert dated.status_code == 304


def test_parts_heads_and_other_methods(browser):
    part = browser.get("/static/js/some.js", headers={"Range": "bytes=7-11"})
    assert (part.status_code, part.content, part["Content-Range"]) == (206, b"const", f"bytes 7-11/{len(OLD)}")
    beyond = browser.get("/static/js/some.js", headers={"Range": "bytes=900-"})
    assert beyond.status_code == 416
    odd = browser.get("/static/js/some.js", headers={"Range": "lines=1-2"})
    assert (odd.status_code, odd.content) == (200, OLD.encode())
    head = browser.head("/static/js/some.js")
    assert (head.status_code, head["Content-Length"]) == (200, str(len(OLD)))
    assert browser.post("/static/js/some.js").status_code == 405


def test_what_is_no_file_is_none(browser):
    for path in ("/static/js", "/static/js/", "/static/js/other.js"):
        assert browser.get(path).status_code == 404
