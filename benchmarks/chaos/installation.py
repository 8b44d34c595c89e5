"""A running installation seen from outside: the tokens of its scripts, its database to compare with, and data to work on."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.e2e.tiny import PATTERNS, make_model
from tests.stack import Stack
from trainer.contracts import Example
from trainer.contracts.example import version_digest
from webapp.machine.places import facts

from .ledger import Ledger
from .patience import AGAIN_S, GIVEN_UP_S, GivenUp, granted, patiently, until

MODEL = "tiny"
COMPARED, GRADED = "chaos pairs", "chaos graded pairs"
PROMPTS, JUDGED = "chaos prompts", "chaos judged prompts"
OVER = ("finished", "failed", "cancelled")
WORDS = [
    "bread",
    "water",
    "lamp",
    "river",
    "stone",
    "letter",
    "window",
    "garden",
    "paper",
    "number",
    "colour",
    "winter",
]
MEMBERS = """
from webapp.accounts.tokens.services import create_token
from webapp.accounts.models import Membership, User
owner = Membership.objects.select_related("workspace").get(user__email="demo@localhost")
for number in range({count}):
    user = User.objects.create_user(f"{name}{{number}}@localhost")
    member = Membership.objects.create(user=user, workspace=owner.workspace, role="annotator")
    print("person", user.pk, create_token(member, "chaos")[1])
"""


@dataclass(frozen=True)
class Site:
    """The installation. `api` is a script of the owner."""

    stack: Stack
    api: httpx.Client
    ledger: Ledger

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows straight from the database, so that the comparison does not use the code that wrote them. Raises GivenUp if the database
        stays away.
        """
        host = facts(self.stack.var, "postgres")["host"]
        deadline = time.monotonic() + GIVEN_UP_S
        while True:
            try:
                with psycopg.connect(
                    host=host, dbname="touchstone", user="touchstone", connect_timeout=10
                ) as connection:
                    return connection.execute(query.encode(), values).fetchall()
            except psycopg.OperationalError as error:  # the database is starting again
                if time.monotonic() > deadline:
                    raise GivenUp(f"the database: {error}") from error
            time.sleep(AGAIN_S)

    def run_folder(self, run: int) -> Path:
        return self.stack.var / "runs" / str(run)

    def post(self, address: str, **body: Any) -> dict[str, Any]:
        """Post until there is an answer. Raises GivenUp for any answer but a success."""
        return self._sent(address, {}, body)

    def once(self, address: str, key: str, **body: Any) -> dict[str, Any]:
        """Post with a key: if the answer gets lost and the request is sent again, nothing is made a second time."""
        return self._sent(address, {"Idempotency-Key": key}, body)

    def _sent(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
        return granted(patiently(self.api, "POST", path, json=body, headers=headers))

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return granted(patiently(self.api, "GET", path, params=query))

    def named(self, path: str, name: str, **body: Any) -> int:
        """The id of the object with this name, made if there is none: it may exist although the answer to its creation was lost."""
        told = patiently(self.api, "POST", path, json={"name": name, **body})
        if told.is_success:
            return int(told.json().get("judge_id") or told.json()["id"])
        if (found := self.find(path, name)) is None:
            raise GivenUp(f"{path}: {told.status_code} {told.text[:500]}")
        return found

    def find(self, path: str, name: str) -> int | None:
        """The id of the object with this name, on any page of the list; None if there is none."""
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=200, **cursor)
            for row in page["items"]:
                if row["name"] == name:
                    return int(row["id"])
            if not page["next"]:
                return None
            cursor = {"cursor": page["next"]}


def people_of(stack: Stack, count: int, name: str) -> list[tuple[int, str]]:
    """New members who annotate: the id and token of each."""
    told = stack.manage("shell", "-v", "0", "-c", MEMBERS.format(count=count, name=name))
    found = [line.split() for line in told.splitlines() if line.startswith("person ")]
    return [(int(number), secret) for _, number, secret in found]


def prepare(site: Site, compared: int, graded: int, runs: bool) -> None:
    """Make what everybody works on, before anything is disturbed: pairs, and for runs a model and prompts."""
    imported(site, COMPARED, [pair(number) for number in range(compared)])
    imported(site, GRADED, [pair(number) for number in range(graded)])
    if not runs:
        return
    make_model(site.stack)
    site.post("models", name=MODEL, source="local", path=str(site.stack.var / "models" / "tiny"))
    imported(site, PROMPTS, [prompt(number, verified=True) for number in range(28)])
    imported(site, JUDGED, [prompt(number, verified=False) for number in range(28)])


def imported(site: Site, name: str, examples: Sequence[Example]) -> dict[str, Any]:
    """Import by the importer that people use; returns the import once it is over."""
    job = send(site, name, written(site.ledger.path.parent / "import.jsonl", examples))
    return until(lambda: site.get(f"imports/{job}"), lambda row: row["state"] in OVER, f"the import of {name}", 600)


def send(site: Site, name: str, file: Path) -> int:
    """Send a file. Once it is acknowledged it is in the ledger, with the digest that its version must have."""
    content = file.read_bytes()
    files = {"file": ("rows.jsonl", content)}
    sent = patiently(site.api, "POST", "datasets/import", data={"name": name}, files=files)
    job = int(granted(sent)["id"])
    site.ledger.write("import", id=job, name=name, digest=version_digest(file))
    return job


def written(path: Path, examples: Iterable[Example]) -> Path:
    with path.open("w") as file:
        file.writelines(example.canonical() + "\n" for example in examples)
    return path


def pair(number: int) -> Example:
    """Two responses and which one is better."""
    topic = f"{WORDS[number % 12]} and {WORDS[number // 12 % 12]} {number}"
    return Example.model_validate_json(
        json.dumps(
            {
                "key": f"pair-{number}",
                "prompt": [{"role": "user", "content": f"Tell me about {topic}."}],
                "responses": [
                    {"id": side, "text": f"{side.upper()} says of {topic}: {' '.join(WORDS)}."} for side in "ab"
                ],
                "preferences": [{"a": "a", "b": "b", "strength": 2 if number % 3 else -2}],
                "split": "train",
            }
        )
    )


def prompt(number: int, *, verified: bool) -> Example:
    """A prompt, one of 24 to train on and four held out, with criteria that a pattern decides, or a judge."""
    criteria = [
        {"id": f"c{place}", "text": text, "points": place + 1}
        | ({"verifier": {"name": "regex", "args": {"pattern": pattern}}} if verified else {})
        for place, (text, pattern) in enumerate(PATTERNS.items())
    ]
    return Example.model_validate_json(
        json.dumps(
            {
                "key": f"prompt-{number}",
                "prompt": [{"role": "user", "content": f"Prompt {number}: {WORDS[number % 12]}"}],
                "rubric": {"criteria": criteria},
                "split": "train" if number < 24 else "heldout",
            }
        )
    )
