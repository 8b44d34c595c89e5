"""Finds the server and the token of a command: first in the environment, otherwise in what `touchstone login` stored."""

import json
import os
from pathlib import Path

from .http import ADDRESS, DEFAULT_ADDRESS, TOKEN
from .server import Server


def place() -> Path:
    """The path of the stored account: TOUCHSTONE_CONFIG, or a file of this user."""
    told = os.environ.get("TOUCHSTONE_CONFIG")
    return Path(told) if told else Path.home() / ".config" / "touchstone" / "account.json"


def server(address: str = "", token: str = "") -> Server:
    """The server of the account. Raises ValueError if no token is known."""
    kept = _kept()
    address = address or os.environ.get(ADDRESS) or kept.get("address") or DEFAULT_ADDRESS
    token = token or os.environ.get(TOKEN) or kept.get("token", "")
    if not token:
        raise ValueError(f"There is no token: run `touchstone login`, or set {TOKEN}.")
    return Server(address, token)


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
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
