"""Who may read the metrics. Nobody may, until a token or a network is named."""

from ipaddress import ip_network

import pytest
from django.conf import settings as django_settings
from django.test import Client

from tests.team import browser

TOKEN = "a-token-of-twenty-letters"
pytestmark = pytest.mark.django_db


@pytest.fixture
def env(monkeypatch):
    def set_to(**values):
        for name, value in values.items():
            monkeypatch.setattr(django_settings.ENV, name, value)

    set_to(metrics_token=None, metrics_networks=(), trusted_proxies=())
    return set_to


def status(address="127.0.0.1", **headers) -> int:
    return Client().get("/metrics", headers=headers, REMOTE_ADDR=address).status_code


def test_nobody_reads_them_by_default_not_even_from_this_machine_or_signed_in(env, team):
    assert status() == 403
    assert status(authorization="Bearer ") == 403
    assert browser(team.owner).get("/metrics").status_code == 403


def test_the_token_opens_and_another_does_not(env):
    env(metrics_token=TOKEN)
    assert status(authorization=f"Bearer {TOKEN}") == 200
    for wrong in (f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer ü"):
        assert status(authorization=wrong) == 403


def test_a_network_that_is_named_opens_to_itself(env):
    env(metrics_networks=(ip_network("10.1.0.0/16"), ip_network("::1/128")))
    assert (status("10.1.2.3"), status("::1"), status("10.2.0.1"), status("")) == (200, 200, 403, 403)


def test_behind_a_proxy_that_nobody_named_nobody_is_near(env):
    env(metrics_networks=(ip_network("127.0.0.1/32"),))
    assert status() == 200
    assert status(x_forwarded_for="198.51.100.7") == 403
    assert status(forwarded="for=198.51.100.7") == 403
    # the server in front has then replaced its address by that of the person
    env(trusted_proxies=(ip_network("127.0.0.1/32"),))
    assert status(x_forwarded_for="127.0.0.1") == 200
