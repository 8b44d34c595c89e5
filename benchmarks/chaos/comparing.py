"""Compares the ledger with the installation once all is quiet: what was acknowledged must be there, once, and runs must equal undisturbed
ones.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trainer.contracts import jsonlines

from .installation import Site
from .judge import question
from .ledger import Ledger
from .patience import until
from .runs import KINDS, Launched, Runs

CLOCK = ("perf/", "async/utilisation", "async/dropped", "judge/latency")
"""Metrics of the time that a run took on this machine and of the cost of failures, not of what it learned."""


@dataclass
class ChaosFinding:
    """A finding over `compared` things; `lost` and `doubled` are mistakes, `told` is a remark."""

    name: str
    compared: int
    lost: int = 0
    doubled: int = 0
    told: str = ""
    examples: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.compared > 0 and not self.lost and not self.doubled


def answers(site: Site, project: int) -> list[ChaosFinding]:
    """Every acknowledged answer is there as it was given, and there is no answer that was not acknowledged."""
    told = [row for row in site.ledger.read("answer") if row["project"] == project]
    stored = site.rows(
        "SELECT id, assignment_id, content, current FROM annotation_answer WHERE project_id = %s", project
    )
    there = {row[0]: row for row in stored}
    lost = [row for row in told if row["id"] not in there or not _as_given(row, there[row["id"]])]
    seats = Counter(row[1] for row in stored if row[3])
    unheard = set(there) - {row["id"] for row in told}
    doubled = sum(count - 1 for count in seats.values()) + len(unheard) + len(told) - len({row["id"] for row in told})
    return [
        ChaosFinding("answers", len(told), len(lost), doubled, examples=[str(row) for row in lost[:3]]),
        _counts(site, project),
    ]


def _as_given(told: dict[str, Any], stored: tuple[Any, ...]) -> bool:
    _, seat, content, current = stored
    reasons = [each["text"] for each in content["reasons"]]
    return bool(
        current and seat == told["seat"] and reasons == [told["text"]] and abs(content["strength"]) == told["strength"]
    )


def _counts(site: Site, project: int) -> ChaosFinding:
    """The counts of seats in tasks equal the numbers of their seats."""
    rows = site.rows(
        """SELECT t.id, t.taken, t.done, t.overlap, count(a.id) FILTER (WHERE a.state IN ('claimed', 'submitted')),
               count(a.id) FILTER (WHERE a.state = 'submitted')
           FROM annotation_task t LEFT JOIN annotation_assignment a ON a.task_id = t.id
           WHERE t.project_id = %s GROUP BY t.id""",
        project,
    )
    wrong = [row for row in rows if row[1] != row[4] or row[2] != row[5]]
    beyond = sum(max(0, row[4] - row[3]) for row in rows)
    return ChaosFinding("counts of tasks", len(rows), len(wrong), beyond, examples=[str(row) for row in wrong[:3]])


def events(site: Site, hook: int) -> list[ChaosFinding]:
    """Every event of the rows is a message, and every message was received; receiving it twice is allowed, and is reported."""
    heard = Counter(row["id"] for row in site.ledger.read("heard"))
    rows = site.rows(
        "SELECT event_id::text, event, state, payload->>'answer' FROM webhooks_delivery WHERE webhook_id = %s", hook
    )
    missing = [row for row in rows if row[0] not in heard or row[2] != "delivered"]
    again = sum(count - 1 for count in heard.values())
    told = Counter(str(row["id"]) for row in site.ledger.read("answer"))
    announced = Counter(row[3] for row in rows if row[1] == "answer.submitted")
    return [
        ChaosFinding(
            "webhook messages",
            len(rows),
            len(missing),
            told=f"{again} were sent again",
            examples=[*map(str, missing[:3])],
        ),
        _counted("events of answers", told, announced),
    ]


def _counted(name: str, expected: Counter[Any], got: Counter[Any], told: str = "") -> ChaosFinding:
    """Compare the counts of each key: a lost one and another that is there twice are two mistakes."""
    lost, doubled = expected - got, got - expected
    examples = [f"{key}: lost" for key in [*lost][:3]] + [f"{key}: besides" for key in [*doubled][:3]]
    return ChaosFinding(name, expected.total(), lost.total(), doubled.total(), told, examples)


def versions(site: Site) -> ChaosFinding:
    """Acknowledged imports have ended, each with the version that its file gives."""
    told, wrong = site.ledger.read("import"), []
    for row in told:
        job = site.get(f"imports/{row['id']}")
        found = site.rows(
            "SELECT v.digest, v.id FROM datasets_importjob j JOIN datasets_datasetversion v ON v.id = j.version_id WHERE j.id = %s",
            row["id"],
        )
        if job["state"] != "finished" or [each[0] for each in found] != [row["digest"]]:
            wrong.append(f"{row['name']}: {job['state']} {job['error']} {found}")
    return ChaosFinding("digests of versions", len(told), len(wrong), examples=wrong[:3])


def published(site: Site, project: int) -> ChaosFinding:
    """The same answers, published twice, give the same version."""
    asked = {"what": "answers", "sources": ["unanimous", "majority"]}
    made = [_publish(site, project, asked) for _ in range(2)]
    digests = {each.get("digest") for each in made}
    return ChaosFinding(
        "publications of one set of answers", 2, int(None in digests), len(digests) - 1, examples=[*map(str, digests)]
    )


def _publish(site: Site, project: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Publish; also if there are so many answers that a job does it."""
    before = _newest_publication(site, project)
    made = site.post(f"projects/{project}/publish", **asked)
    if made.get("digest"):
        return made
    return (
        until(partial(_newest_publication, site, project), lambda found: found != before, "the publication", 900) or {}
    )


def _newest_publication(site: Site, project: int) -> dict[str, Any] | None:
    listed: list[dict[str, Any]] = site.get(f"projects/{project}/publications", limit=1)["items"]
    return listed[0] if listed else None


def verdicts(site: Site, judged: Ledger) -> ChaosFinding:
    """Every question that the judge has received is answered in the verdict store; questions received more than once are counted."""
    asked = Counter((row["model"], row["question"]) for row in judged.read("asked"))
    rows = site.rows(
        """SELECT e.name, v.state, v.request FROM judging_verdict v JOIN judging_judgeversion j ON j.id = v.version_id
           JOIN inference_endpoint e ON e.id = j.endpoint_id WHERE e.name = ANY(%s)""",
        sorted({model for model, _ in asked}),
    )
    stored = Counter((name, question(request)) for name, state, request in rows if state == "done")
    again = sum(count - 1 for count in asked.values())
    found = _counted("verdicts", Counter(asked.keys()), stored, f"{again} questions were asked again")
    found.lost += sum(state != "done" for _, state, _ in rows)
    return found


def runs(site: Site, found: Runs) -> list[ChaosFinding]:
    """Compare each disturbed run with the undisturbed run of its kind."""
    whole = {each.kind: each for each in found.launched if not each.disturbed}
    out = []
    for kind in KINDS:
        mine = [each for each in found.launched if each.kind == kind and each.disturbed]
        out += [
            _compared(f"metrics of {kind} runs", [(metrics(site, whole[kind]), metrics(site, each)) for each in mine]),
            _compared(f"samples of {kind} runs", [(samples(site, whole[kind]), samples(site, each)) for each in mine]),
            _compared(f"weights of {kind} runs", [(weights(site, whole[kind]), weights(site, each)) for each in mine]),
        ]
    return [*out, spools(site, [each.id for each in found.launched])]


Values = dict[Any, Any]


def _compared(name: str, sides: Sequence[tuple[Values, Values]]) -> ChaosFinding:
    """`lost` counts values that the disturbed run lacks or has differently; `doubled` counts values that only it has."""
    compared = lost = doubled = 0
    examples: list[str] = []
    for expected, got in sides:
        wrong = [key for key, value in expected.items() if key not in got or got[key] != value]
        more = got.keys() - expected.keys()
        compared, lost, doubled = compared + len(expected), lost + len(wrong), doubled + len(more)
        examples += [f"{key}: {got.get(key, 'missing')} instead of {expected[key]}"[:300] for key in wrong[:3]]
        examples += [f"{key}: besides" for key in sorted(more, key=str)[:3]]
    told = f"{len(sides)} disturbed run{'s' * (len(sides) != 1)}"
    return ChaosFinding(name, compared, lost, doubled, told, examples)


def metrics(site: Site, run: Launched) -> Values:
    rows = site.rows("SELECT key, step, value, histogram FROM experiments_point WHERE run_id = %s", run.id)
    return {(key, step): (value, histogram) for key, step, value, histogram in rows if not key.startswith(CLOCK)}


def samples(site: Site, run: Launched) -> Values:
    """The trained and evaluated samples, by step and place: the example, the response and its reward."""
    rows = site.rows(
        "SELECT step, phase, \"group\", index, example_key, content->>'response', reward, advantage"
        " FROM experiments_rollout WHERE run_id = %s",
        run.id,
    )
    return {tuple(row[:4]): tuple(row[4:]) for row in rows}


def weights(site: Site, run: Launched) -> Values:
    folder = site.run_folder(run.id) / "outputs"
    files = sorted(folder.rglob("*.safetensors"))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def spools(site: Site, ids: Iterable[int]) -> ChaosFinding:
    """Checks that the record of each run's process equals what the server has: every number, every log line, every last value."""
    compared, wrong = 0, []
    for run in ids:
        lines = jsonlines.rows((site.run_folder(run) / "events.jsonl").read_text())
        compared += len(lines)
        if [line["seq"] for line in lines] != list(range(1, len(lines) + 1)):
            wrong.append(f"run {run}: its own numbers have gaps")
        [(last,)] = site.rows("SELECT last_seq FROM experiments_run WHERE id = %s", run)
        if last != len(lines):
            wrong.append(f"run {run}: {len(lines)} events, the server knows {last}")
        kept = site.rows("SELECT event, message FROM experiments_logline WHERE run_id = %s AND event IS NOT NULL", run)
        said = {(line["seq"], line["data"]["message"]) for line in lines if line["data"]["kind"] == "log"}
        wrong += [f"run {run}: log line {each}" for each in said ^ set(kept)]
        wrong += _last_values(site, run, lines)
    return ChaosFinding("events of runs", compared, len(wrong), examples=wrong[:5])


def _last_values(site: Site, run: int, lines: list[dict[str, Any]]) -> list[str]:
    told: dict[tuple[str, int], float] = {}
    for line in lines:
        if line["data"]["kind"] == "metrics":
            told |= {(key, line["step"]): value for key, value in line["data"]["values"].items()}
    rows = site.rows("SELECT key, step, value FROM experiments_point WHERE run_id = %s", run)
    stored = {(key, step): value for key, step, value in rows if value is not None}
    return [f"run {run}: {key} is {stored.get(key)}, told was {told.get(key)}" for key in told.keys() | stored.keys()
            if told.get(key) != stored.get(key)]  # fmt: skip


def everything(site: Site, project: int, hook: int, judged: Ledger, found: Runs) -> list[ChaosFinding]:
    return [
        *answers(site, project),
        *events(site, hook),
        versions(site),
        published(site, project),
        verdicts(site, judged),
        *(runs(site, found) if found.launched else []),
    ]
