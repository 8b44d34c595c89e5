"""The addresses that a webhook may have."""

import socket
from ipaddress import ip_network

import pytest

from webapp.core.network import destinations
from webapp.core.problems import Invalid
from webapp.webhooks import targets


def resolving(monkeypatch, *answers):
    """Every name resolves to these addresses."""

    def lookup(host, port, **options):
        family = [socket.AF_INET6 if ":" in answer else socket.AF_INET for answer in answers]
        return [(f, socket.SOCK_STREAM, 6, "", (a, port)) for f, a in zip(family, answers, strict=True)]

    monkeypatch.setattr(destinations, "getaddrinfo", lookup)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",  # noqa: S104
            "224.0.0.1",
        ),
        *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1"),
    ],
)
def test_addresses_that_are_not_public_are_refused(monkeypatch, address):
    resolving(monkeypatch, address)
    with pytest.raises(Invalid) as refused:
        targets.checked("https://receiver.example/")
    assert "WEBHOOK_NETWORKS" in refused.value.fields["url"]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "[::1]", "localhost"])
def test_other_spellings_of_this_machine_are_refused_too(host):
    with pytest.raises(Invalid):
        targets.checked(f"https://{host}/")


def test_one_private_address_among_public_ones_closes_the_name(monkeypatch):
    resolving(monkeypatch, "93.184.215.14", "10.0.0.1")
    with pytest.raises(Invalid, match="cannot be used"):
        targets.checked("https://receiver.example/")


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700::1111", "64:ff9b::5db8:d70e"])
def test_public_addresses_are_open_over_tls_only(monkeypatch, address):
    resolving(monkeypatch, address)
    assert targets.checked(" https://Receiver.example/a?b=c#d ") == "https://receiver.example/a?b=c"
    with pytest.raises(Invalid) as refused:
        targets.checked("http://receiver.example/")
    assert "https://" in refused.value.fields["url"]


def test_the_operator_opens_networks_one_by_one(monkeypatch, settings):
    settings.WEBHOOK_NETWORKS = (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
    for address, is_open in [("10.1.2.3", True), ("fd12::1", True), ("::ffff:10.1.2.3", True), ("10.2.0.1", False)]:
        resolving(monkeypatch, address)
        if is_open:
            assert targets.checked("http://inside.example:8080/") == "http://inside.example:8080/"
        else:
            with pytest.raises(Invalid):
                targets.checked("http://inside.example:8080/")


@pytest.mark.parametrize(
    "url",
    [
        *("", "receiver.example", "ftp://receiver.example/", "https://", "https:///path", "file:///etc/passwd"),
        *("https://me:secret@receiver.example/", "https://receiver.example:99999/", "https://a b/", "https://[::1/"),
        "https://receiver.example/" + "x" * 2000,
    ],
)
def test_what_is_no_web_address_is_refused_at_the_field(monkeypatch, url):
    resolving(monkeypatch, "93.184.215.14")
    with pytest.raises(Invalid) as refused:
        targets.checked(url)
    assert refused.value.fields["url"]


def test_a_name_that_does_not_resolve_says_so():
    with pytest.raises(Invalid) as refused:
        targets.checked("https://nowhere.invalid/")
    assert "cannot be found" in refused.value.fields["url"]
