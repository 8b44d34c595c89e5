"""The addresses that a webhook may have. See webapp.core.network.destinations."""

import httpx
from django.conf import settings

from webapp.core.network import destinations
from webapp.core.network.destinations import DestinationRefused, Fence, port
from webapp.core.problems import Invalid

__all__ = ["DestinationRefused", "addresses", "checked", "parse", "port"]


def checked(url: str) -> str:
    """`url` in its normal form. Raises Invalid at `url`."""
    try:
        parsed = parse(url)
        addresses(parsed.raw_host.decode(), port(parsed), parsed.scheme)
    except DestinationRefused as reason:
        raise Invalid("The address cannot be used.", {"url": str(reason)}) from reason
    return str(parsed)


def parse(url: str) -> httpx.URL:
    """Raises DestinationRefused unless it is http(s), names a host and carries no password."""
    return destinations.parse(url, instead_of_password="the signature says who sends")  # noqa: S106 - words, no secret


def addresses(host: str, port: int, scheme: str) -> list[str]:
    """Every address that `host` stands for now. Raises DestinationRefused if it stands for none, or for one that is closed."""
    return Fence(settings.WEBHOOK_NETWORKS, "WEBHOOK_NETWORKS").addresses(host, port, scheme)
