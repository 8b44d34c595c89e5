"""Finds the server and the token of a program: first in the environment, otherwise in what `touchstone login` stored."""

import json
import os
from pathlib import Path
from typing import NamedTuple

ADDRESS, TOKEN = "TOUCHSTONE_URL", "TOUCHSTONE_TOKEN"  # noqa: S105  names of variables
DEFAULT_ADDRESS = "http://127.0.0.1:8000"


class KnownServer(NamedTuple):
    """A server, and a token for it; the token is empty if none is known."""

    address: str
    token: str


def place() -> Path:
    """The path of the stored account: TOUCHSTONE_CONFIG, or a file of this user."""
    told = os.environ.get("TOUCHSTONE_CONFIG")
    return Path(told) if told else Path.home() / ".config" / "touchstone" / "account.json"


def account(address: str = "", token: str = "") -> KnownServer:
    """The account of a program that gives this address or this token, or leaves them out. A stored token is sent only to the server that
    gave it: with another address, the program needs a token of its own."""
    kept = _kept()
    known = base(kept.get("address", ""))
    address = base(address or os.environ.get(ADDRESS) or known or DEFAULT_ADDRESS)
    token = token or os.environ.get(TOKEN) or (kept.get("token", "") if address == known else "")
    return KnownServer(address, token.strip())


def base(address: str) -> str:
    """The address without the path of the API."""
    return address.strip().rstrip("/").removesuffix("/api/v1")


def keep(address: str, token: str) -> Path:
    """Writes the account to a file that only its owner can read from the moment when it is made."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump({"address": address, "token": token}, out)
    partial.replace(path)
    return path


def _kept() -> dict[str, str]:
    try:
        found = json.loads(place().read_text())
    except (OSError, ValueError, RuntimeError):  # the last one: this user has no home
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
