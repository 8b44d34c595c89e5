"""An hour of everything at once: `make soak`, or `python -m benchmarks.soak [--minutes M]`.

Starts its own installation. A run trains whose rewards a judge decides through an endpoint. 50 people compare answers in their
browsers' sessions and think for 20 s on average. 100 people watch the run: they open its page, follow its websocket, and open
the page again every two minutes on average. All of this shares the machine with the installation.

Prints what each process holds at a sixth, a third, two thirds and the end of the time (10, 20, 40 and 60 minutes), p95s of the first and
the last sixth, reconnects, errors, connections to the database, and what an answer and a step of the run take on the disk. Exit status 1 if
the anonymous memory of a process that was there at all marks grew by more than 16 MB and a tenth from the first mark to the last, in ten
minutes or more, or if anything failed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from benchmarks.judges import chat_server
from benchmarks.machine import describe
from tests.e2e.tiny import eventually, import_examples, make_model
from tests.stack import ROOT, Stack
from webapp.machine.places import facts

from . import processes
from .processes import MB, SoakedProcess

ANNOTATORS, VIEWERS = 50, 100
THINK_S, AGAIN_S = 20.0, 120.0
MARKS = (1 / 6, 1 / 3, 2 / 3, 1.0)  # of the time
MARK = MARKS[0]
JUDGED_FROM_MINUTES = 10.0  # in less time caches are still filling
NOBODY = "nobody"  # before the people have come, while the run is under way
PAIRS, PROMPTS, MODEL = "soak pairs", "soak prompts", "tiny"
CRITERIA = ("Says what was asked for.", "Is written in full sentences.", "Invents nothing.")
RUN: dict[str, Any] = {
    "data": {"max_prompt_tokens": 64},
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 16},
    "evaluation": {"every": 50, "max_examples": 4},
    "checkpoint": {"every": 50},
}
PEOPLE = """
import json
from benchmarks.annotation import CSRF, signed_in
from webapp.accounts.models import Membership, User
from webapp.annotation.models import Participant
owner = Membership.objects.get(user__email="demo@localhost")
found = []
for role, count in (("annotator", {annotators}), ("reviewer", {viewers})):
    for number in range(count):
        user = User.objects.create_user(f"{{role}}{{number}}@localhost")
        Membership.objects.create(user=user, workspace=owner.workspace, role=role)
        if role == "annotator":
            Participant.objects.create(project_id={project}, user=user)
        found.append({{"cookie": signed_in(user, owner.workspace_id), "csrf": CSRF}})
print("people", json.dumps(found))
"""
SIZES = """
SELECT sum(pg_total_relation_size(oid)) FILTER (WHERE relname LIKE 'annotation\\_%%'),
       sum(pg_total_relation_size(oid)) FILTER (WHERE relname LIKE 'experiments\\_%%' OR relname LIKE 'judging\\_%%')
FROM pg_class WHERE relkind = 'r'
"""


@dataclass
class Marks:
    """The measurements at the marks: `seen` has "nobody", and then one entry for each mark, by its name. `sizes`: bytes of answers and of
    runs in the database; `steps` of the run.
    """

    seen: dict[str, list[SoakedProcess]]
    sizes: dict[str, tuple[int, int]]
    steps: dict[str, int]
    connections: int = 0


def main() -> int:
    options = _options()
    machine = describe()
    seconds = 60 * options.minutes
    stack = Stack("--no-demo")
    try:
        stack.wait_until_up()
        with stack.api() as api, chat_server(stack.var) as judge:
            project, run = prepare(api, stack, judge, seconds)
            marks, worked, watched = soak(api, stack, project, run, seconds)
            ended = api.get(f"runs/{run}").json()
            api.post(f"runs/{run}/stop").raise_for_status()
    finally:
        code = stack.stop()
    print(machine)
    trouble = report(marks, worked, watched, seconds)
    if ended["state"] != "running":
        trouble.append(f"the run is {ended['state']}: {ended['state_reason']}")
    if code:
        trouble.append(f"the installation ended with {code}")
    print("\n".join(f"NOT as it should be: {each}" for each in trouble) or "nothing failed")
    return 1 if trouble else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    return parser.parse_args()


def prepare(api: httpx.Client, stack: Stack, judge: str, seconds: float) -> tuple[int, int]:
    """Start the project and the run; returns their ids."""
    import_examples(api, stack, PAIRS, map(pair, range(int(ANNOTATORS * (seconds / THINK_S + 4)))))
    import_examples(api, stack, PROMPTS, map(prompt, range(28)))
    post(api, "models", name=MODEL, source="local", path=str(make_model(stack)))
    endpoint = post(api, "endpoints", kind="chat", name="soak", url=judge, model="soak", retries=3)["id"]
    post(api, "judges", name="soak", spec={"kind": "criterion"}, endpoint=endpoint)
    project = post(api, "projects", name="soak", kind="pairwise", dataset={"name": PAIRS}, overlap=2, open=True)["id"]
    eventually(lambda: api.get(f"projects/{project}").json(), lambda row: row["tasks_made"], stack, 300)
    config = {**RUN, "steps": int(100 * seconds), "rewards": [{"kind": "rubric", "judge": "soak v1"}]}
    run = post(api, "runs", recipe="policy", name="soak", dataset=PROMPTS, model=MODEL, config=config)["id"]
    eventually(lambda: api.get(f"runs/{run}").json(), lambda row: row["progress"]["step"] >= 2, stack, 300)
    return project, run


def post(api: httpx.Client, address: str, /, **body: Any) -> dict[str, Any]:
    answer = api.post(address, json=body)
    if not answer.is_success:
        raise RuntimeError(f"{address}: {answer.status_code} {answer.text[:500]}")
    return dict(answer.json())


def pair(number: int) -> dict[str, Any]:
    sides = [
        {"id": side, "text": f"{side} says of question {number}: {'it depends on the weather. ' * 20}"} for side in "ab"
    ]
    return {"key": f"pair-{number}", "prompt": [{"role": "user", "content": f"Question {number}?"}], "responses": sides}


def prompt(number: int) -> dict[str, Any]:
    rubric = {"criteria": [{"id": f"c{place}", "text": text, "points": 1} for place, text in enumerate(CRITERIA)]}
    asked = [{"role": "user", "content": f"Say something about number {number}."}]
    return {
        "key": f"prompt-{number}",
        "prompt": asked,
        "rubric": rubric,
        "split": "train" if number < 24 else "heldout",
    }


def soak(api: httpx.Client, stack: Stack, project: int, run: int, seconds: float) -> tuple[Marks, Any, Any]:
    """Let people work and watch; returns the marks, and the reports of annotators and viewers."""
    told = stack.manage(
        "shell", "-v", "0", "-c", PEOPLE.format(annotators=ANNOTATORS, viewers=VIEWERS, project=project)
    )
    people = json.loads(next(line for line in told.splitlines() if line.startswith("people "))[len("people ") :])
    marks = Marks({}, {}, {})
    look(marks, NOBODY, api, stack, run)
    place = urlsplit(stack.url)
    annotators = crowd(
        "benchmarks.annotators",
        {
            "host": place.hostname,
            "port": place.port,
            "project": project,
            "people": people[:ANNOTATORS],
            "seconds": seconds,
            "think_s": THINK_S,
        },
    )
    cookies = [each["cookie"] for each in people[ANNOTATORS:]]
    viewers = crowd(
        "benchmarks.soak.viewers",
        {"address": stack.url, "cookies": cookies, "runs": [run], "seconds": seconds, "again_s": AGAIN_S},
    )
    began = time.monotonic()
    for mark in MARKS:
        at = min(mark * seconds, seconds - 5)  # while everybody is still there
        while (left := began + at - time.monotonic()) > 0:
            time.sleep(min(left, 10))
            marks.connections = max(marks.connections, connections(stack))
        look(marks, f"{mark * seconds / 60:.3g} min", api, stack, run)
        print(f"looked after {at:.0f} s", flush=True)
    worked, watched = annotators(), viewers()
    weigh(marks, "end", api, stack, run)
    return marks, worked, watched


def look(marks: Marks, name: str, api: httpx.Client, stack: Stack, run: int) -> None:
    marks.seen[name] = processes.below(stack.process.pid)
    weigh(marks, name, api, stack, run)


def weigh(marks: Marks, name: str, api: httpx.Client, stack: Stack, run: int) -> None:
    """Note the bytes in the database and the steps of the run at one moment."""
    marks.sizes[name] = sizes(stack)
    marks.steps[name] = api.get(f"runs/{run}").json()["progress"]["step"]


def crowd(module: str, config: dict[str, Any]) -> Any:
    """Start a separate process; calling the result waits for it and returns what it prints. Raises RuntimeError with its last lines."""
    command = [sys.executable, "-m", module]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("pipes were asked for")
    said = process.stdout
    process.stdin.write(json.dumps(config))
    process.stdin.close()

    def end() -> Any:
        text = said.read()
        if process.wait():
            raise RuntimeError(f"{module} ended with {process.returncode}")
        return json.loads(text)

    return end


def query(stack: Stack, text: str) -> tuple[Any, ...]:
    host = facts(stack.var, "postgres")["host"]
    with psycopg.connect(host=host, dbname="touchstone", user="touchstone", connect_timeout=10) as connection:
        row: tuple[Any, ...] = connection.execute(text.encode()).fetchall()[0]
        return row


def connections(stack: Stack) -> int:
    """The connections to the database, without this one."""
    return int(query(stack, "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = 'touchstone'")[0])


def sizes(stack: Stack) -> tuple[int, int]:
    answers, runs = query(stack, SIZES.replace("%%", "%"))
    return int(answers), int(runs)


def report(marks: Marks, worked: dict[str, Any], watched: dict[str, Any], seconds: float) -> list[str]:
    """Print the tables; returns what is wrong."""
    labels = [name for name in marks.seen if name != NOBODY]
    found = processes.rows([marks.seen[name] for name in labels])
    print(f"{processes.table(found, labels)}\n")
    print(f"{services(marks)}\n")
    took = {
        "submission and next task": list(zip(worked["sent"], worked["took"], strict=True)),
        **{f"{name} of a viewer": [(at, ms) for at, ms in values] for name, values in watched["took"].items()},
    }
    print(latencies(took, seconds))
    answers, counts = len(worked["answers"]), watched["counts"]
    print(
        f"{answers:,} answers; {counts.get('messages', 0):,} messages over websockets, {counts.get('resyncs', 0)} resyncs"
    )
    print(f"{counts.get('reconnects', 0)} reconnects; {marks.connections} connections to the database at most")
    print(disk(marks, answers))
    trouble = [f"{count} times: {words}" for words, count in watched["errors"].items()]
    trouble += [f"an annotator: {words}" for words in sorted(set(worked["errors"]))[:5]]
    trouble += [f"{counts['reconnects']} lost connections"] if counts.get("reconnects") else []
    if seconds >= 60 * JUDGED_FROM_MINUTES:
        trouble += [f"{row.name} grew from {row.first:.0f} to {row.last:.0f} MB" for row in found if row.grows]
    return trouble


def services(marks: Marks) -> str:
    """The memory of processes by name at each mark, shared pages once, and the CPU time from the mark "nobody" to the last."""
    names = list(marks.seen)
    held: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    for side, name in enumerate(names):
        for each in marks.seen[name]:
            service = each.name.partition(",")[0]
            held.setdefault(service, [0.0] * len(names))[side] += each.share / MB
            sign = {0: -1, len(names) - 1: 1}.get(side, 0)
            spent[service] = spent.get(service, 0.0) + sign * each.cpu_s
    heads = "".join(f"{name:>10}" for name in names)
    lines = [f"{'MB of all together':44}{heads}{'processor s':>13}"]
    for service, sizes in sorted(held.items()):
        lines.append(f"{service:44}{_cells(sizes)}{max(spent[service], 0):13.1f}")
    lines.append(f"{'all':44}{_cells([sum(row[side] for row in held.values()) for side in range(len(names))])}")
    buffers = [sum(each.shared for each in marks.seen[name] if each.name.startswith("Postgres")) / MB for name in names]
    return "\n".join([*lines, f"{'of it shared memory of Postgres':44}{_cells(buffers)}"])


def _cells(values: list[float]) -> str:
    return "".join(f"{value:10.1f}" for value in values)


def latencies(took: dict[str, list[tuple[float, float]]], seconds: float) -> str:
    lines = [f"{'p95 in ms':32}{'requests':>10}{'median':>9}{'first 1/6':>11}{'last 1/6':>10}{'worst':>9}"]
    for name, values in took.items():
        parts = (
            [ms for at, ms in values if at <= MARK * seconds],
            [ms for at, ms in values if at >= (1 - MARK) * seconds],
        )
        every = [ms for _, ms in values]
        first, last = (p95(part) for part in parts)
        middle, worst = (f"{statistics.median(every):.1f}", f"{max(every):.1f}") if every else ("–", "–")
        lines.append(f"{name:32}{len(every):10,}{middle:>9}{first:>11}{last:>10}{worst:>9}")
    return "\n".join(lines)


def p95(values: list[float]) -> str:
    """The 95th percentile as text; a dash if there are too few values."""
    return f"{sorted(values)[int(0.95 * len(values))]:.1f}" if len(values) >= 20 else "–"


def disk(marks: Marks, answers: int) -> str:
    """Bytes in the database that answers and steps have taken, indexes included."""
    grown = [end - before for before, end in zip(marks.sizes[NOBODY], marks.sizes["end"], strict=True)]
    steps = marks.steps["end"] - marks.steps[NOBODY]
    each = [f"{size / count:,.0f} bytes" if count else "–" for size, count in zip(grown, (answers, steps), strict=True)]
    return f"in the database: {each[0]} per answer, {each[1]} per step of the run ({steps:,} steps, 8 responses each)"


if __name__ == "__main__":
    sys.exit(main())
