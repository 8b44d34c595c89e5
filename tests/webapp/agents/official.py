"""An agent that speaks with this server through MCP's official client."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import client_packages
from webapp.accounts.models import Membership
from webapp.accounts.tokens.services import create_token


class Official:
    """The process with the client. It takes a second or two to start, so tests share it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(client_packages.folder(client_packages.MCP))}
        command = [sys.executable, str(Path(__file__).with_name("program.py"))]
        self._process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def say(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        self._process.communicate()


class Agent:
    """A session of the client, with a token of this person. `rights`: its areas, all if there are none."""

    def __init__(self, official: Official, address: str, membership: Membership, **rights: str) -> None:
        self._official = official
        secret = create_token(membership, "agent", rights=rights or None)[1]
        self.session = official.say(connect=f"{address}/mcp", token=secret)

    def tools(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self._official.say(list=True)["tools"]}

    def call(self, tool: str, **arguments: Any) -> tuple[bool, dict[str, Any]]:
        """(whether it was carried out, the answer)."""
        told = self._official.say(tool=tool, arguments=arguments)
        return not told["failed"], json.loads(told["text"])

    def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that must be carried out."""
        done, answer = self.call(tool, **arguments)
        assert done, (tool, answer)
        return answer

    def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must be refused."""
        done, answer = self.call(tool, **arguments)
        assert not done, (tool, answer)
        error: dict[str, Any] = answer["error"]
        return error
