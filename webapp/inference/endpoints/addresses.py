"""Checks the address of an endpoint: see webapp.core.network.destinations."""

from collections.abc import Callable

from django.conf import settings

from webapp.core.network import destinations
from webapp.core.network.destinations import DestinationRefused, Fence
from webapp.core.problems import Invalid


def checked(url: str) -> str:
    """The base address of a chat API in its normal form, without `/chat/completions`. Raises Invalid at `url`."""
    return _checked(url, whole=False).rstrip("/").removesuffix("/chat/completions")


def posted_to(url: str) -> str:
    """The address of a reward service, in full. Raises Invalid at `url`."""
    return _checked(url, whole=True)


def _checked(url: str, *, whole: bool) -> str:
    try:
        parsed = destinations.parse(url, instead_of_password="enter the key in its own field")  # noqa: S106 - words
        if parsed.query and not whole:
            raise DestinationRefused("must end before the question mark: it is a base address, such as https://host/v1")
        _fence().addresses(parsed.raw_host.decode(), destinations.port(parsed), parsed.scheme)
    except DestinationRefused as reason:
        raise Invalid("The address cannot be used.", {"url": str(reason)}) from reason
    return str(parsed)


def same_origin(one: str, other: str) -> bool:
    """Whether a key given for one address may go to the other."""
    first, second = (destinations.parse(url, instead_of_password="") for url in (one, other))
    ports = destinations.port(first), destinations.port(second)
    return (first.scheme, first.host, ports[0]) == (second.scheme, second.host, ports[1])


def refuse(url: str) -> Callable[[str], str]:
    """A function for the client of `url`, which calls it before it connects: why an IP address is refused; empty if it is not."""
    scheme = url.partition(":")[0]
    return lambda address: _fence().closed(address, scheme)


def _fence() -> Fence:
    return Fence(settings.ENDPOINT_NETWORKS, "ENDPOINT_NETWORKS")


def host(url: str) -> str:
    """Host and port, for lists and the audit log."""
    return str(destinations.parse(url, instead_of_password="").netloc.decode())
