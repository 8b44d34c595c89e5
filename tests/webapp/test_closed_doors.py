"""Walks the whole URL map: everything that was not opened on purpose is closed.

A stranger, an annotator and the owner of another workspace ask for every page. The ids in the addresses belong to the lab's rows, so an
answer of 200 to the outsider has shown a row of somebody else.
"""

import re

import pytest
from django.test import Client

from tests.team import ApiClient, browser
from tests.webapp.routes import routes

pytestmark = pytest.mark.django_db

# the pages that strangers may open: sign-in, health, and the description of the API
OPEN = {
    "sign-in",
    "sign-in/link/x",
    "invite/x",
    "join/x",
    "personal-data/x",
    "healthz",
    "readyz",
    "api/v1/docs",
    "api/v1/openapi.json",
    "llms.txt",
}
PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")


def addresses() -> list[str]:
    """Every address of the URL map, with ids that do not exist in a workspace of the person who asks."""
    filled = (PARAMETER.sub(lambda match: "1" if match[1] in ("int", None) else "x", route) for route in routes())
    return sorted(set(filled))


def test_the_map_is_not_empty():
    assert {"sign-in", "api/v1/me", "settings/tokens"} <= set(addresses())


@pytest.mark.parametrize("method", ["get", "post"])
def test_strangers_get_in_nowhere(method):
    open_doors, client = set(), Client()
    for address in addresses():
        client.cookies.clear()
        response = getattr(client, method)(f"/{address}")
        if response.status_code == 302:
            assert response.headers["Location"].startswith("/sign-in"), address
        elif response.status_code not in (401, 403, 404, 405):
            open_doors.add(address)
    assert open_doors <= OPEN


def test_the_outsider_sees_no_row_of_the_lab(team):
    client = browser(team.outsider)
    script = ApiClient(team.outsider)
    for address in addresses():
        for answer in (client.get(f"/{address}"), script.client.get(f"/{address}")):
            if answer.status_code != 200 or getattr(answer, "streaming", False):
                continue
            text = answer.content.decode()
            assert "@example.org" not in text and ">Lab<" not in text and '"Lab"' not in text, address


def test_annotators_reach_no_settings_of_others(as_annotator):
    for address in ("settings/members", "settings/audit"):
        assert as_annotator.get(f"/{address}").status_code == 403
    for address in ("settings/members/1",):
        assert as_annotator.post(f"/{address}").status_code == 403


def test_no_address_breaks_for_anyone(team):
    """No request of any person makes the server crash."""
    for client in (browser(team.owner), browser(team.annotator), ApiClient(team.owner).client):
        client.raise_request_exception = False
        for address in addresses():
            for method in ("get", "post"):
                status = getattr(client, method)(f"/{address}").status_code
                assert status < 500 or (address == "readyz" and status == 503), (method, address)
