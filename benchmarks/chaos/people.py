"""Scripted people who annotate over the API: what was acknowledged to them is in the ledger before they continue."""

import random
import threading
import time
from typing import Any

import httpx

from .installation import COMPARED, Site, people_of
from .patience import GivenUp, patiently, until

THINK_S = (0.1, 0.6)


class ChaosPeople:
    """The project in which they compare pairs, and a thread for each of them."""

    def __init__(self, site: Site, count: int, seed: int, name: str) -> None:
        self.site = site
        given = {"kind": "pairwise", "dataset": {"name": COMPARED}, "overlap": 2, "open": True}
        self.project = int(site.post("projects", name=f"of {name}", **given)["id"])
        until(lambda: site.get(f"projects/{self.project}"), lambda row: row["tasks_made"], "the tasks", 300)
        members = people_of(site.stack, count, name)
        for user, _ in members:
            site.post(f"projects/{self.project}/people", user=user)
        self._stop = threading.Event()
        self.broken: list[str] = []
        self.longest_wait_s = 0.0
        self._threads = [
            threading.Thread(target=self._work, args=(f"{name}-{user}", token, random.Random(f"{seed} {user}")))  # noqa: S311
            for user, token in members
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; returns when everybody has the acknowledgement of the last answer."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident:
                thread.join()

    def _work(self, name: str, token: str, draw: random.Random) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        address = f"{self.site.stack.url}/api/v1/"
        try:
            with httpx.Client(base_url=address, headers=headers, timeout=20, trust_env=False) as client:
                while not self._stop.is_set():
                    claimed = patiently(client, "POST", f"projects/{self.project}/claim", json={"hold": 2})
                    if claimed.status_code != 200:
                        raise GivenUp(f"claim: {claimed.status_code} {claimed.text[:300]}")
                    if not claimed.json()["items"]:
                        return
                    for seat in claimed.json()["items"]:
                        self._answer(client, name, seat, draw)
        except Exception as error:  # reported at the end: a person who cannot work is a finding
            self.broken.append(f"{name}: {type(error).__name__}: {error}")

    def _answer(self, client: httpx.Client, name: str, seat: dict[str, Any], draw: random.Random) -> None:
        time.sleep(draw.uniform(*THINK_S))
        content: dict[str, Any] = {
            "verdict": "compared",
            "strength": draw.choice([-3, -2, -1, 1, 2, 3]),
            "reasons": [{"text": f"{name} about {seat['id']}: {draw.random()}"}],
        }
        revision = seat["draft_revision"]
        if draw.random() < 0.3:
            draft = {"content": content, "revision": revision, "seconds": 1.0}
            kept = patiently(client, "PUT", f"assignments/{seat['id']}/draft", json=draft)
            revision = kept.json()["revision"] if kept.status_code == 200 else revision
        body = {"content": content, "revision": revision, "seconds": 2.0, "hold": 0}
        began = time.monotonic()
        told = patiently(client, "POST", f"assignments/{seat['id']}/submit", json=body)
        self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - began)
        if told.status_code == 200:
            answer = told.json()["answer"]["id"]
            text, strength = content["reasons"][0]["text"], abs(content["strength"])
            self.site.ledger.write(
                "answer", id=answer, seat=seat["id"], project=self.project, text=text, strength=strength
            )
        else:
            self.site.ledger.write("refused", seat=seat["id"], status=told.status_code, why=told.text[:300])
