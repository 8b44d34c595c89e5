"""The pins are compared with a list of known faults. A small server in this test serves the list in the same way as osv.dev."""

import json
from typing import Any

import pytest

from scripts import audit_packages
from tests.answering import Answering, address, serve

DJANGO = next(each for each in audit_packages.pinned() if each.name == "django")
HTMX = next(each for each in audit_packages.pinned() if each.ecosystem == "npm")
FAULTS: dict[str, Any] = {
    "GHSA-1": {
        "aliases": ["CVE-2026-1", "PYSEC-1"],
        "published": "2026-11-01T00:00:00Z",
        "summary": "A way in\nfor strangers",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "Django"},
                "ranges": [
                    {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]},
                    {"type": "GIT", "events": [{"fixed": "a1b2c3"}]},
                ],
            },
            {"package": {"name": "other"}, "ranges": [{"type": "ECOSYSTEM", "events": [{"fixed": "3"}]}]},
        ],
    },
    "PYSEC-1": {
        "aliases": ["CVE-2026-1", "GHSA-1"],
        "published": "2026-11-04T09:00:00Z",
        "details": "Before 99.1, strangers could come in.",
    },
    "GHSA-2": {"published": "2026-10-01T00:00:00Z", "details": "Slow"},
    "GHSA-3": {"withdrawn": "2026-11-02T00:00:00Z"},
}
FAULTS["PYSEC-1"]["affected"] = FAULTS["GHSA-1"]["affected"]


class Osv(Answering):
    """`known`: {(name, page): (ids, next page)}."""

    known = {}
    asked = []

    def do_POST(self):
        queries = json.loads(self.sent())["queries"]
        self.asked.append(len(queries))
        self._say({"results": [self._of(each) for each in queries]})

    def do_GET(self):
        self._say(FAULTS[self.path.rpartition("/")[2]])

    def _of(self, query):
        ids, page = self.known.get((query["package"]["name"], query.get("page_token", "")), ((), ""))
        found = {"vulns": [{"id": each, "modified": "2026-11-01T00:00:00Z"} for each in ids]} if ids else {}
        return found | ({"next_page_token": page} if page else {})

    def _say(self, found):
        self.write(json.dumps(found).encode())


@pytest.fixture
def osv():
    Osv.known, Osv.asked = {}, []
    with serve(Osv) as server:
        yield address(server)


def test_every_pin_of_every_lock_is_asked_about(osv, capsys, monkeypatch):
    monkeypatch.setattr(audit_packages, "AT_ONCE", 100)
    assert audit_packages.main(osv) == 0
    assert sum(Osv.asked) == len(audit_packages.pinned()) and max(Osv.asked) == 100
    assert f"{len(audit_packages.pinned())} pins compared" in capsys.readouterr().out
    found = {(each.ecosystem, each.name) for each in audit_packages.pinned()}
    assert {("PyPI", "django"), ("PyPI", "torch"), ("PyPI", "vllm"), ("PyPI", "pip"), ("npm", "htmx.org")} <= found
    assert not any("+" in each.version for each in audit_packages.pinned())


def test_what_is_known_is_listed_once_with_what_mends_it(osv, capsys):
    Osv.known = {
        ("django", ""): (["GHSA-1"], "more"),
        ("django", "more"): (["PYSEC-1", "GHSA-3"], ""),
        (HTMX.name, ""): (["GHSA-2"], ""),
    }
    assert audit_packages.main(osv) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == sorted(
        [
            f"{DJANGO}: CVE-2026-1, known since 2026-11-01, mended in 99.1: A way in for strangers",
            f"{HTMX}: GHSA-2, known since 2026-10-01, mended in no version yet: Slow",
        ]
    )
    assert lines[-1].endswith("2 known faults")


@pytest.mark.parametrize("answer", [None, b"<html>", b"[]", b'{"results": []}'])
def test_a_list_that_cannot_be_asked_is_no_clean_bill(osv, capsys, monkeypatch, answer):
    def post(self):
        self.sent()
        self.write(answer)

    monkeypatch.setattr(Osv, "do_POST", post)
    assert audit_packages.main(osv if answer else "http://127.0.0.1:1") == 2
    told = capsys.readouterr()
    assert "Nothing was compared" in told.err and "known fault" not in told.out
