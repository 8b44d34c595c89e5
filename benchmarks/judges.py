"""Judging through an endpoint: `python -m benchmarks.judges [--peer PYTHON]`, or `make bench-judges`.

Starts a Postgres, a Redis and a web process, and a chat server that answers each request after 200 ms and counts hits in its prefix cache. Client,
server and database share the machine's cores.

- Verdicts per second, stored in the database, beside a bare loop of the same HTTP library with the same requests that
  stores nothing; each twice, in turns. How many requests were in flight on average, and how much of what prompts share
  came from the cache.
- A page of an evaluation that rests on 10,000 stored verdicts.
- The same grading of 200 responses by 10 criteria through autorubric (PyPI), in an environment of its own under `var/peers/`,
  made the first time; `--peer` names the Python of another. Left out, with the reason, where it cannot be made.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import httpx

from benchmarks.chatserver import ChatServer
from benchmarks.ingest import services
from benchmarks.machine import describe
from benchmarks.peers import PeerAway, installed

IN_FLIGHT = 200
LATENCY_MS = 200
RESPONSES, CRITERIA = (
    1_000,
    10,
)  # long enough that opening the connections, and waiting for the last answers, hardly counts
GRADED = 200  # responses, for the comparison with autorubric
PAIRS = 5_000  # judged in both orders: 10,000 verdicts
ROUNDS = 2
PAGE_READS = 20
PEER = "autorubric==1.6.1"

WORDS = "The answer names the cause, shows each step, and keeps to the length that was asked for. "
QUESTION = (
    "How do I keep bread from going stale, and what do I do with bread that already is? Explain it in some detail."
)
STATEMENTS = [
    f"The response {what}."
    for what in (
        "says to keep bread in a closed box or bag",
        "warns against the refrigerator",
        "mentions freezing in slices",
        "says how to refresh stale bread in the oven",
        "names at least one dish made of stale bread",
        "explains why bread goes stale",
        "keeps mould apart from staleness",
        "is written in full sentences",
        "invents no numbers",
        "stays below 400 words",
    )
]


@dataclass(frozen=True)
class Speed:
    """The speed of one round. CPU time per request, in ms: of this process, of the chat server and of the database."""

    per_second: float
    cpu_ms: float
    server_ms: float
    database_ms: float
    in_flight: float
    cached_share: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judges", description=__doc__)
    parser.add_argument("--peer", type=Path, help="the Python of an environment that has autorubric")
    parser.add_argument("--responses", type=int, default=RESPONSES, help=f"judged by {CRITERIA} criteria each")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of the evaluation, judged in both orders")
    parser.add_argument("--graded", type=int, default=GRADED, help="responses graded beside autorubric")
    options = parser.parse_args()
    machine = describe()
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder:
        var = Path(folder)
        os.environ["ENDPOINT_NETWORKS"] = "127.0.0.0/8"
        with services(var) as web, chat_server(var) as url:
            import django

            django.setup()
            found = ours_and_bare(url, options.responses)
            found |= evaluation_page(web, url, options.pairs)
            found |= against_autorubric(url, var, options.peer, options.graded)
    print(machine)
    report(found)


def report(found: dict[str, dict[str, Any]]) -> None:
    print(f"{'':32}{'ours':>10}{'peer':>10}{'ratio':>8}")
    for name, row in found.items():
        peer, ratio = (f"{row[key]:,.2f}" if row[key] is not None else "–" for key in ("peer", "ratio"))
        print(f"{name:32}{row['ours']:10,.2f}{peer:>10}{ratio:>8}   {row['unit']}")
    print(json.dumps(found))


def result(ours: float, peer: float | None, unit: str) -> dict[str, Any]:
    ratio = None if not peer else round(ours / peer, 3)
    return {"ours": round(ours, 2), "peer": peer and round(peer, 2), "unit": unit, "ratio": ratio}


@contextlib.contextmanager
def chat_server(var: Path) -> Iterator[str]:
    answers = var / "answers.json"
    answers.write_text(json.dumps(ANSWERS))
    command = [
        sys.executable,
        "-m",
        "benchmarks.chatserver",
        "--latency-ms",
        str(LATENCY_MS),
        "--answers",
        str(answers),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield (process.stdout and process.stdout.readline().strip()) or ""
        finally:
            process.terminate()


ANSWERS = {
    "criterion": json.dumps({"explanation": WORDS, "met": True}),
    "checklist": json.dumps(
        {"verdicts": [{"number": n + 1, "explanation": WORDS, "met": True} for n in range(CRITERIA)]}
    ),
    "pairwise": json.dumps({"reasons": [WORDS, WORDS], "verdict": "A"}),
    "peer-per_criterion": json.dumps({"criterion_status": "MET", "explanation": WORDS}),
    "peer-per_item": json.dumps(
        {
            "judgments": [
                {"criterion_id": f"c{n}", "criterion_status": "MET", "explanation": WORDS} for n in range(CRITERIA)
            ]
        }
    ),
}


def ours_and_bare(url: str, count: int) -> dict[str, dict[str, Any]]:
    """Both in turns, so that other work on the machine affects both."""
    version = judge("criterion", url)
    inputs = responses(count)
    bare, ours = [], []
    for number in range(ROUNDS):
        bodies = requests_of(version, inputs)
        bare.append(timed(url, len(bodies), lambda bodies=bodies: asyncio.run(bare_loop(url, bodies))))
        ours.append(timed(url, len(bodies), lambda number=number: judged(version, inputs, draw=number)))
        print(f"round {number + 1}: bare {bare[-1]}, ours {ours[-1]}", flush=True)
    best = {"ours": max(ours, key=lambda s: s.per_second), "bare": max(bare, key=lambda s: s.per_second)}
    possible = cacheable(requests_of(version, inputs))
    return {
        "judges_stored": result(best["ours"].per_second, best["bare"].per_second, "verdicts/s"),
        "judges_in_flight": result(100 * median(s.in_flight for s in ours) / IN_FLIGHT, None, "% of the limit"),
        "judges_cpu": result(best["ours"].cpu_ms, best["bare"].cpu_ms, "ms/request"),
        "judges_cpu_server": result(best["ours"].server_ms, best["bare"].server_ms, "ms/request"),
        "judges_cpu_database": result(best["ours"].database_ms, None, "ms/request"),
        "judges_prefix_cache": result(100 * ours[-1].cached_share, 100 * possible, "% of prompt tokens"),
    }


def timed(url: str, count: int, work: Any) -> Speed:
    base = url.removesuffix("/v1")
    httpx.post(f"{base}/reset")
    before, database = httpx.get(f"{base}/stats").json(), database_cpu_s()
    used, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    stats = httpx.get(f"{base}/stats").json()
    if stats["requests"] != count:
        raise RuntimeError(f"{count} calls were expected, {stats['requests']} arrived")
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return Speed(
        per_second=count / seconds,
        cpu_ms=1000 * cpu / count,
        server_ms=1000 * (stats["cpu_s"] - before["cpu_s"]) / count,
        database_ms=1000 * (database_cpu_s() - database) / count,
        in_flight=stats["mean_in_flight"],
        cached_share=stats["cached_tokens"] / stats["prompt_tokens"],
    )


def database_cpu_s() -> float:
    """CPU time that the process behind our connection has used."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        stat = Path(f"/proc/{cursor.fetchone()[0]}/stat").read_text()
    return sum(int(ticks) for ticks in stat.rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")


async def bare_loop(url: str, bodies: list[bytes]) -> None:
    """The least that a client can do: post, read, parse, drop."""
    waiting = iter(bodies)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:

        async def work() -> None:
            for body in waiting:
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    json.loads(await response.read())["choices"][0]["message"]["content"]

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


def cacheable(bodies: list[bytes]) -> float:
    """The share of prompt tokens that a cache could save if the requests came one after the other, sorted."""
    server = ChatServer()
    for body in sorted(bodies):
        server.fill_cache(json.loads(body))
    return server.cached_tokens / server.prompt_tokens


def judge(kind: str, url: str) -> Any:
    """A version of a new judge of that kind, which asks the chat server."""
    from webapp.inference.endpoints import services as endpoints
    from webapp.judging.judges.services import create_judge

    owner = membership()
    endpoint = endpoints.create_endpoint(
        owner, "chat", name=f"{kind} {time.monotonic_ns()}", url=url, model=kind, concurrency=IN_FLIGHT
    )
    return create_judge(owner, name=endpoint.name, spec={"kind": kind}, endpoint=endpoint)


def membership() -> Any:
    from webapp.accounts.models import Membership, User
    from webapp.accounts.workspaces.services import create_workspace

    found = Membership.objects.select_related("user", "workspace").first()
    return found or create_workspace("Bench", User.objects.create_user("bench@example.org", name="Bench"))


def responses(count: int) -> list[Any]:
    from trainer.contracts import Criterion, Message
    from trainer.judges.inputs import JudgeInput

    criteria = tuple(Criterion(id=f"c{n}", text=text, points=1.0) for n, text in enumerate(STATEMENTS))
    conversation = (Message(role="user", content=QUESTION),)
    return [
        JudgeInput(example=f"e{n}", conversation=conversation, responses={"r": response_text(n)}, criteria=criteria)
        for n in range(count)
    ]


def response_text(number: int) -> str:
    return f"Answer {number}. " + WORDS * 12


def requests_of(version: Any, inputs: list[Any]) -> list[bytes]:
    """The requests that our client sends for these inputs, ready to be posted."""
    from trainer.judges.client import ChatClient
    from webapp.inference.endpoints.targets import endpoint_target
    from webapp.judging.asking.calls import expanded

    async def rendered() -> list[bytes]:
        client = ChatClient(endpoint_target(version.endpoint))
        calls = expanded(version.resolved, version.digest, inputs, Counter())
        return [client.encoded(call.request) for call in calls]

    return asyncio.run(rendered())


def judged(version: Any, inputs: list[Any], draw: int = 0) -> None:
    from webapp.judging.asking.calls import judge_calls

    counts = judge_calls(version, inputs, draw=draw)
    if counts.done != counts.total:
        raise RuntimeError(f"not every call brought a verdict: {counts}")


def evaluation_page(web: str, url: str, count: int) -> dict[str, dict[str, Any]]:
    """The slowest page of an audit of a pairwise judge over HTTP, among many readings."""
    from django.test import Client

    from webapp.datasets.versions import services as datasets
    from webapp.evaluation.launch import services as evaluation
    from webapp.evaluation.work import running
    from webapp.judging.models import Verdict

    owner, version = membership(), judge("pairwise", url)
    dataset = datasets.create_dataset(owner, "pairs")
    listed = datasets.new_version(owner, dataset, pairs(count), None, {"from": "benchmark"})
    config = {"judges": [{"version": version.pk}]}
    row = evaluation.create(owner, recipe="judge_audit", config=config, dataset=listed)
    running.run(row.pk)
    row.refresh_from_db()
    stored = Verdict.objects.filter(version=version).count()
    if row.state != "finished" or stored != 2 * count:
        raise RuntimeError(f"the evaluation is {row.state} ({row.problem}) with {stored} verdicts")
    session = Client()
    session.force_login(owner.user, backend="django.contrib.auth.backends.ModelBackend")
    with httpx.Client(base_url=web, cookies={"sessionid": session.cookies["sessionid"].value}, timeout=60) as client:
        client.get("/evaluations")  # loading at the first page is not measured
        took = {page: _reads(client, f"/evaluations/{row.pk}{page}") for page in ("", "/cases", "/config")}
    for page, each in took.items():
        print(f"evaluation{page}: first {each[0]:.0f} ms, median {median(each):.0f} ms", flush=True)
    slowest = max(median(each) for each in took.values())
    return {"judges_evaluation_page": result(slowest, None, f"ms with {stored:,} verdicts")}


def _reads(client: httpx.Client, path: str) -> list[float]:
    took = []
    for _ in range(PAGE_READS):
        started = time.perf_counter()
        answer = client.get(path)
        took.append(1000 * (time.perf_counter() - started))
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answers {answer.status_code}")
    return took


def pairs(count: int) -> Iterator[Any]:
    from trainer.contracts import Example, Message, Preference, Response

    for n in range(count):
        yield Example(
            key=f"p{n}",
            prompt=(Message(role="user", content=f"{QUESTION} ({n})"),),
            responses=(Response(id="a", text=response_text(n)), Response(id="b", text=response_text(-n - 1))),
            preferences=(Preference(a="a", b="b", strength=-1 if n % 3 else 1, rater="gold"),),
            domain=("bread", "cake", "soup")[n % 3],
        )


def against_autorubric(url: str, var: Path, python: Path | None, count: int) -> dict[str, dict[str, Any]]:
    """Verdicts per second of both on the same responses and criteria, one after the other."""
    try:
        python = python or installed("autorubric", PEER) / "python"
    except PeerAway as away:
        print(f"the comparison with autorubric is left out: {away}", flush=True)
        return {}
    material = var / "material.json"
    graded = [{"question": QUESTION, "response": response_text(n)} for n in range(count)]
    material.write_text(json.dumps({"criteria": STATEMENTS, "responses": graded}))
    command = [str(python), "-m", "benchmarks.autorubric_client", url, str(material)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"autorubric failed and is left out:\n{done.stderr[-2000:]}")
        return {}
    peer = json.loads(done.stdout.splitlines()[-1])
    inputs, found = responses(count), {}
    for name, kind, calls in (
        ("judges_vs_autorubric", "criterion", "per_criterion"),
        ("judges_vs_autorubric_one_call", "checklist", "per_item"),
    ):
        version = judge(kind, url)
        judged(version, inputs[:1])  # as for autorubric, the first call is not measured
        started = time.perf_counter()
        judged(version, inputs, draw=1)
        rate = CRITERIA * len(inputs) / (time.perf_counter() - started)
        found[name] = result(rate, peer[calls]["verdicts"] / peer[calls]["seconds"], "verdicts/s")
    return found


if __name__ == "__main__":
    main()
