"""Addresses that someone typed in and a server of ours is to connect to: public ones over TLS, and the networks that the operator opens.

Checked when an address is saved, for the person who types it, and again on the very address that is then connected to: a name that resolved
to a public address yesterday may resolve to 127.0.0.1 today.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import SOCK_STREAM, getaddrinfo

import httpx

LONGEST = 2000
HOST = re.compile(r"[a-z0-9._:-]+")  # ASCII by now: other alphabets are written as xn--
NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are the IPv4 address that is really meant
# not public either, though not every release of Python's tables says so: site-local IPv6 (RFC 3879), IETF protocol assignments
CLOSED = (IPv6Network("fec0::/10"), IPv4Network("192.0.0.0/24"))
Address = IPv4Address | IPv6Address


class DestinationRefused(Exception):
    """The address may not be connected to, or cannot be found; the message says why."""


def parse(url: str, *, instead_of_password: str) -> httpx.URL:
    """Raises DestinationRefused unless it is http(s), names a host and carries no password; `instead_of_password` says what else."""
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError) as error:
        raise DestinationRefused(f"is not an address: {error}") from error
    if parsed.scheme not in ("https", "http") or not parsed.host:
        raise DestinationRefused("must begin with https:// and name a host")
    if parsed.userinfo:
        raise DestinationRefused(f"must not hold a user name or password: {instead_of_password}")
    if not HOST.fullmatch(parsed.raw_host.decode()) or not 0 < port(parsed) < 65536:
        raise DestinationRefused("must name a host and port that can exist")
    if len(str(parsed)) > LONGEST:
        raise DestinationRefused(f"must have at most {LONGEST} characters")
    return parsed.copy_with(fragment=None)


def port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


@dataclass(frozen=True)
class Fence:
    """The public networks and those that `setting` opens."""

    networks: tuple[IPv4Network | IPv6Network, ...]
    setting: str

    def addresses(self, host: str, port: int, scheme: str) -> list[str]:
        """Every address that `host` stands for now. Raises DestinationRefused if it stands for none, or for one that is closed:
        a name with a public and a private address is refused whole."""
        try:
            found = getaddrinfo(host.strip("[]"), port, type=SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise DestinationRefused(f"{host} cannot be found: {getattr(error, 'strerror', None) or error}") from error
        plain = [str(entry[4][0]).partition("%")[0] for entry in found]
        for text in plain:
            if reason := self.closed(text, scheme):
                raise DestinationRefused(reason if text == host else f"{host} is {text}; {reason}")
        return list(dict.fromkeys(plain))

    def closed(self, address: str, scheme: str) -> str:
        """The reason why this IP address may not be connected to; empty if it may."""
        meant = _meant(ip_address(address))
        if any(meant in network for network in self.networks):
            return ""
        if (
            not meant.is_global
            or meant.is_multicast
            or meant.is_reserved
            or any(meant in network for network in CLOSED)
        ):
            return f"{meant} is not public. The person who runs Touchstone can allow its network with {self.setting}"
        return "" if scheme == "https" else "must begin with https://, so that nobody else can read what is sent"


def _meant(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one that only wraps it; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or address
