"""People annotating, over HTTP: `python -m benchmarks.annotation [--seconds S] [--tasks N] [--peers]`.

Starts a Postgres, a Redis and the web server as `manage.py up` starts them, creates a project with N (100,000) tasks, and
lets annotators work in it through the REST API with a browser's session and CSRF token. One request submits an answer
and brings the next task. The annotators are a separate process; they share the machine's cores with server and
database.

- 50 people without think time: submissions per second.
- 200 people who think for 20 s on average: latency.
- Then the project's answers are exported, and every answer that was acknowledged is looked for there, as it was given;
  every task is checked for a person too many or for one who had it twice.
- 200 people who claim one task in the same moment: how many get it.

With `--peers` Potato and Label Studio are installed into `var/peers/`, and the same 50 people work in each on this machine, once ours is
stopped: see `peers`. If one is missing, the number measured elsewhere, also on 2 cores, is shown and marked.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

from benchmarks.annotators import ANSWER
from benchmarks.ingest import services
from benchmarks.machine import describe
from benchmarks.peers import ELSEWHERE, PeerAway, label_studio, potato
from benchmarks.peers.people import Load
from trainer.contracts import jsonlines

PEOPLE, THINKERS, THINK_S = 50, 200, 20.0
OVERLAP, RUSHED = 2, 3
TEXT = "The quick brown fox jumps over the lazy dog and tells everybody about it at some length. "
CSRF = "b" * 32
CLAIMED = f"of 200 simultaneous claims of {RUSHED} seats"
# name in the last line: (name in the table, unit). Of both loads
PROMISED = {
    "annotation_errors": ("errors", "requests"),
    "annotation_answers": ("answers acknowledged", "answers"),
    "annotation_lost": ("answers lost", "answers not in the export as they were given"),
    "annotation_double": ("seats given twice or beyond a task's number", "seats"),
    "annotation_claims": (CLAIMED, f"claims won; {RUSHED} are right"),
    "annotation_export": ("s for their export over HTTP", "s"),
}


@dataclass(frozen=True)
class Peer:
    """Submissions per second of 50 people without think time and their p95 in ms; `here`: measured in this run."""

    rate: float
    p95_ms: float | None = None
    here: bool = False


POTATO = "Potato"
LABEL_STUDIO = "Label Studio on Postgres"
MEASURED_ELSEWHERE = {POTATO: Peer(17.0), LABEL_STUDIO: Peer(5.0, 13_600.0)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.annotation", description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="how long the 50 people work")
    parser.add_argument("--think-seconds", type=int, default=90, help="how long the 200 people work")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--peers", action="store_true", help="install and measure Potato and Label Studio here, too")
    parser.add_argument("--peer-seconds", type=int, default=60, help="how long the 50 people work in a peer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder, services(Path(folder)) as address:
        found = measure(address, options)
    beside = dict(MEASURED_ELSEWHERE)
    if options.peers:
        beside |= in_peers(options.peer_seconds, options.tasks)
    print(describe())
    report(found, beside)


def in_peers(seconds: int, tasks: int) -> dict[str, Peer]:
    """The tools that run on this machine; each of the others is named with the reason."""
    work: dict[str, Callable[[], Load]] = {
        POTATO: lambda: potato.measure(PEOPLE, seconds),
        LABEL_STUDIO: lambda: label_studio.measure(PEOPLE, seconds, tasks),
    }
    found = {}
    for name, measured in work.items():
        try:
            load = measured()
        except PeerAway as away:
            print(f"{name} is not measured here: {away}. It stands with its number from elsewhere.")
            continue
        found[name] = Peer(load.rate, load.p95_ms, here=True)
        shares = f"{len(load.took):,} submissions, {len(load.failed):,} failed"
        took = f"{load.rate:.1f} per second, p95 {load.p95_ms:,.0f} ms"
        print(f"{name}, {PEOPLE} people for {load.elapsed:.0f} s on this machine: {took}")
        print(f"  ({shares}; each with the task that follows)", flush=True)
    return found


def report(found: dict[str, float], beside: dict[str, Peer]) -> None:
    """Print the table. The last line says of each peer's number whether it was measured in this run or elsewhere."""
    for name, value in found.items():
        print(f"{name:44}{value:12,.1f}")
    rate = found["submit+next per second, 50 people"]
    studio = beside[LABEL_STUDIO]
    rows = {
        "annotation_vs_potato": (rate, beside[POTATO].rate, _unit("submit+next/s", beside[POTATO])),
        "annotation_vs_label_studio": (rate, studio.rate, _unit("submit+next/s", studio)),
        "annotation_p95": (found["p95 ms, 50 people"], studio.p95_ms, _unit("ms", studio)),
        "annotation_p95_thinking": (found["p95 ms, 200 people thinking 20 s"], None, "ms"),
        **{name: (found[words], None, unit) for name, (words, unit) in PROMISED.items()},
        "annotation_tasks_made": (found["tasks made per second"], None, "tasks/s"),
    }
    print(json.dumps({name: _row(*row) for name, row in rows.items()}))


def _unit(unit: str, peer: Peer) -> str:
    return unit if peer.here else f"{unit}, {ELSEWHERE}"


def _row(ours: float, peer: float | None, unit: str) -> dict[str, Any]:
    ratio = peer and round(peer / ours if unit.startswith("ms") else ours / peer, 1)
    return {"ours": round(ours, 1), "peer": peer and round(peer, 1), "unit": unit, "ratio": ratio}


def measure(address: str, options: argparse.Namespace) -> dict[str, float]:
    import django

    django.setup()
    from webapp.annotation.projects import task_services

    membership = _workspace()
    started = time.perf_counter()
    version = _version(membership, options.tasks)
    print(f"{options.tasks:,} examples written in {time.perf_counter() - started:.1f} s", flush=True)
    project = _project(membership, version, "large", OVERLAP)
    started = time.perf_counter()
    task_services.make(project)
    found = {"tasks made per second": options.tasks / (time.perf_counter() - started)}
    busy, given = _busy(address, membership, project, options.seconds)
    thinking, more = _thinking(address, membership, project, options.think_seconds)
    errors = {"errors": busy.pop("errors") + thinking.pop("errors")}
    found |= busy | thinking | errors | _audit(address, membership, project, given + more)
    return found | _rush(address, membership, version)


Found = tuple[dict[str, float], list[list[int]]]  # figures, and the answers that were acknowledged


def _busy(address: str, membership: Any, project: int, seconds: int) -> Found:
    people = _people(membership, project, PEOPLE, "busy")
    cpu = _cpu()
    result = _annotators(address, people, project=project, seconds=seconds, think_s=0)
    cpu = {name: seconds - cpu.get(name, 0) for name, seconds in _cpu().items()}
    took, done = sorted(result["took"]), len(result["answers"])
    return {
        "submit+next per second, 50 people": done / result["elapsed"],
        "p50 ms, 50 people": _quantile(took, 0.5),
        "p95 ms, 50 people": _quantile(took, 0.95),
        "errors": len(result["errors"]),
        **{f"ms of processor per submission: {name}": used * 1000 / max(done, 1) for name, used in cpu.items()},
    }, result["answers"]


def _thinking(address: str, membership: Any, project: int, seconds: int) -> Found:
    people = _people(membership, project, THINKERS, "thinking")
    result = _annotators(address, people, project=project, seconds=seconds, think_s=THINK_S)
    took = sorted(result["took"])
    return {
        "requests per second, 200 people thinking": len(took) / result["elapsed"],
        "p50 ms, 200 people thinking 20 s": _quantile(took, 0.5),
        "p95 ms, 200 people thinking 20 s": _quantile(took, 0.95),
        "errors": len(result["errors"]),
    }, result["answers"]


def _rush(address: str, membership: Any, version: Any) -> dict[str, float]:
    """200 people claim one task with three seats."""
    from webapp.annotation.models import Assignment, Task
    from webapp.annotation.projects import task_services

    project = _project(membership, version, "rush", RUSHED, state="draft")
    task_services.make(project)
    first = Task.objects.filter(project=project).order_by("rank").values_list("id", flat=True)[0]
    Task.objects.filter(project=project).exclude(id=first).delete()
    people = _people(membership, project, THINKERS, "rush")
    _open(project)
    result = _annotators(address, people, project=project, rush=True)
    if result["errors"]:
        raise RuntimeError(f"claims failed: {result['errors'][:3]}")
    told, stored = sum(result["got"]), Assignment.objects.filter(task=first, state="claimed").count()
    if told != stored:
        raise RuntimeError(f"{told} people were told that they have the task, {stored} are stored")
    return {CLAIMED: float(told)}


def _annotators(address: str, people: list[dict[str, str]], **config: Any) -> dict[str, Any]:
    place = urlsplit(address)
    config |= {"host": place.hostname, "port": place.port, "people": people}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.annotators"],
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    for error in sorted(set(result["errors"]))[:5] if not config.get("rush") else ():
        print(f"an error: {error}", flush=True)
    return result


def _cpu() -> dict[str, float]:
    """CPU seconds that the database, the broker and the web server have used so far, with those of ended parts."""
    used: dict[str, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            name = {"postgres": "database", "valkey-server": "broker"}.get(process.name(), "web")
            used[name] = used.get(name, 0) + sum(map(int, fields[11:15])) / tick
    return used


def _audit(address: str, membership: Any, project: int, acknowledged: list[list[int]]) -> dict[str, float]:
    """Acknowledged answers compared with the export, as a researcher downloads it; seats compared with the database."""
    from django.db.models import Count, F, Q

    from webapp.annotation.models import Assignment, Task

    started = time.perf_counter()
    exported = _exported(address, membership, project)
    took = time.perf_counter() - started
    there = {row["id"] for row in exported if _as_given(row)}
    lost = sum(answer not in there for answer, _ in acknowledged)
    twice = len(exported) - len({(row["task"], row["rater"]) for row in exported})
    live = Count("assignments", filter=Q(assignments__state__in=["claimed", "submitted"]))
    tasks = Task.objects.filter(project=project).annotate(live=live)
    too_many = sum(tasks.filter(live__gt=F("overlap")).values_list(F("live") - F("overlap"), flat=True))
    seats = Assignment.objects.filter(project=project)
    doubled = seats.count() - seats.values("task", "user").distinct().count()
    return {
        "answers acknowledged": len(acknowledged),
        "answers lost": lost,
        "answers nobody was told of": len(exported) - len(acknowledged),
        "seats given twice or beyond a task's number": twice + too_many + doubled,
        "tasks whose counts differ from their rows": tasks.exclude(live=F("taken")).count(),
        "s for their export over HTTP": took,
    }


def _exported(address: str, membership: Any, project: int) -> list[dict[str, Any]]:
    headers = {"Cookie": signed_in(membership.user, membership.workspace_id)}
    lines = httpx.get(f"{address}/api/v1/projects/{project}/answers/export?format=jsonl", headers=headers, timeout=600)
    lines.raise_for_status()
    return jsonlines.rows(lines.text)


def _as_given(row: dict[str, Any]) -> bool:
    """Whether an exported answer is as it was given: everybody gives the same answer in the shown order, and the export turns it back."""
    content, swapped = row["content"], row["shown_order"] == [1, 0]
    strength = -ANSWER["strength"] if swapped else ANSWER["strength"]
    reasons = [each["text"] for each in content.get("reasons", ())]
    return bool(
        content["verdict"] == ANSWER["verdict"]
        and content["strength"] == strength
        and reasons == [each["text"] for each in ANSWER["reasons"]]
    )


def _workspace() -> Any:
    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace

    return create_workspace("Bench", User.objects.create_user("bench@localhost"))


def _version(membership: Any, count: int) -> Any:
    """A frozen version of `count` pairs of about 1,500 characters each, written straight into the tables."""
    from django.db import connection

    from trainer.contracts import Example as Record
    from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember

    dataset = Dataset.objects.create(workspace=membership.workspace, name="bench")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
    for first in range(0, count, 2_000):
        texts = [(number, _example(number)) for number in range(first, min(first + 2_000, count))]
        rows = Example.objects.bulk_create(
            Example(
                dataset=dataset, key=f"k{n}", digest=Record.digest_of(text), canonical=text, excerpt=f"Question {n}?"
            )
            for n, text in texts
        )
        VersionMember.objects.bulk_create(
            VersionMember(version=version, example=row, position=n) for row, (n, _) in zip(rows, texts, strict=True)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE datasets_example, datasets_versionmember")
    return version


def _example(number: int) -> str:
    sides = [{"id": side, "text": f"{side} {number}: {TEXT * 7}"} for side in ("a", "b")]
    prompt = [{"content": f"Question {number}? {TEXT * 2}", "role": "user"}]
    return json.dumps({"key": f"k{number}", "prompt": prompt, "responses": sides}, sort_keys=True)


def _project(membership: Any, version: Any, name: str, overlap: int, state: str = "open") -> int:
    from webapp.annotation.models import Guidelines, Project

    project = Project.objects.create(
        workspace=membership.workspace, name=name, kind="pairwise", version=version, overlap=overlap, state=state
    )
    Guidelines.objects.create(project=project, number=1, text="Be fair.")
    return project.pk


def _open(project: int) -> None:
    from webapp.annotation.models import Project

    Project.objects.filter(id=project).update(state="open")


def _people(membership: Any, project: int, count: int, name: str) -> list[dict[str, str]]:
    """Annotators let into the project, each with the cookies of a signed-in browser."""
    from webapp.accounts.models import Membership, User
    from webapp.annotation.models import Participant

    found = []
    for number in range(count):
        user = User.objects.create_user(f"{name}{number}@localhost")
        Membership.objects.create(user=user, workspace=membership.workspace, role="annotator")
        Participant.objects.create(project_id=project, user=user)
        found.append({"cookie": signed_in(user, membership.workspace_id), "csrf": CSRF})
    return found


def signed_in(user: Any, workspace: int) -> str:
    """The cookies of a new session."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session["workspace"] = workspace
    session.create()
    return f"sessionid={session.session_key}; csrftoken={CSRF}"


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


if __name__ == "__main__":
    main()
