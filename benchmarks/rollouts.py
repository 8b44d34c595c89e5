"""The rollouts of one large run: `python -m benchmarks.rollouts [--rows N]`.

Starts a Postgres of its own in a temporary folder and fills a run with N rollouts, 512 a step, each with a prompt, a response of about 90
words drawn as words of a language are (few often, most rarely), a tenth of it Chinese, its tokens with log-probabilities, two parts of a
reward and a judge's explanation. The contents of the first 128,000 come again in later steps, but for one in a thousand: Postgres copies
them as they are compressed, in a tenth of the time. Then it asks the API in this process, as the page of the run does, and says how long an
answer took and how much memory the process has had at most. Worker processes index the words before, each a part of the run. At the end it
stores more rollouts as the ingest does: by itself, while a worker indexes them, and as if the request indexed them.
"""

import argparse
import json
import logging
import random
import resource
import statistics
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from itertools import islice, pairwise
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database

STEP, GROUP = 512, 8
PROMPTS = 2_000
POOL = 4_000  # texts that rollouts are made of, each with words of its own
VOCABULARY = 60_000
SELDOM = 128_000  # one of this many rollouts has a word of its own kind
PERIOD = SELDOM  # after this many the same prompts come again in the same places of a step
COPIED_AT_ONCE = PERIOD // 2
OWN = 77  # the number of the first rollout that has a word of its own also after that; each thousandth is drawn as the first are
TOLD = 500_000
AUTOVACUUM = "autovacuum_enabled"
COLUMNS = 'id, run_id, step, phase, "group", index, example_key, reward, advantage, excluded, part_values, content'
COPY_LATER = """
INSERT INTO experiments_rollout
    (id, run_id, step, phase, "group", index, example_key, reward, advantage, excluded, part_values, content)
SELECT id + %s, run_id, step + %s, phase, "group", index, example_key, reward, advantage, excluded, part_values, content
FROM experiments_rollout WHERE id BETWEEN %s AND %s AND (id - 1) %% 1000 <> 77 ORDER BY id
"""
SEARCHES = {
    "a word in every rollout": "{0}",
    "a word in one of 25": "{80}",
    "a word in one of 128,000": "seldom",
    "a word in one rollout": f"only{OWN}",
    "no hit": "nowhere",
    "two common words": "{0} {1}",
    "two words, seldom together": "{3000} {3500}",
    "a common and a rare word": "{0} seldom",
    "a phrase": '"{0} {1}"',
    "Chinese, often": "的一",
    "Chinese, no hit": "龘龗龘",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollouts", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--stored", type=int, default=4_000, help="rollouts that are stored at the end, as the ingest does"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that index, each a part of the run")
    parser.add_argument("--index", nargs="+", type=int, metavar=("RUN", "NUMBER"), help=argparse.SUPPRESS)
    parser.add_argument("--fill", nargs=4, type=int, metavar=("RUN", "FROM", "TO", "BY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        return _fill(*options.fill)
    if options.index:
        return _index(*options.index)
    with database():
        logging.getLogger("webapp.core.requests.limits").setLevel(
            logging.ERROR
        )  # there is no cache here, and each request says so
        _measure(options)
    return None


def _measure(options: argparse.Namespace) -> None:
    client, run = reader_and_run()
    rows = options.rows
    _filled(run.pk, rows)
    _indexed(run.pk, rows, options.workers)
    asked = ApiTimes(client, run.pk, options.rounds)
    print(describe())
    print(f"{rows:,} rollouts in {-(-rows // STEP):,} steps; {_sizes()}")
    print(f"{'':40}{'rows':>6}{'first ms':>10}{'median ms':>11}{'worst ms':>10}")
    last = -(-rows // STEP) - 1
    asked("the newest page", limit=100)
    asked("a page from the middle", limit=100, cursor=_cursor("newest", last // 2, "train", 0, 0))
    asked("a page from the end", limit=100, cursor=_cursor("newest", 1, "train", 0, 0))
    asked("a step", step=last // 2, limit=100)
    asked("a step, by reward", step=last // 2, sort="-reward", limit=100)
    asked("all steps, by reward", sort="-reward", limit=100)
    asked("all steps, by a part, a verdict", part="judge", low=0.9, verdict="unmet", limit=100)
    asked("all steps, a part that none has", part="judge", low=2.0, limit=100)
    asked("a prompt's steps, with lengths", "/prompt", example_key="e7", limit=50)
    asked("a prompt's steps, for its curve", "/prompt", example_key="e7", lengths="false", limit=2_000)
    asked("a prompt's responses in a step", step=7 * GROUP // STEP, example_key="e7", limit=100)
    asked("a prompt's responses, newest first", example_key="e7", phase="train", limit=100)
    asked("what can be filtered by, as the page asks", "/facets", step=last // 2, counted="false")
    asked("the same with counts", "/facets", step=last // 2)
    worst = [asked(label, text=text.format(*_vocabulary()), limit=100) for label, text in SEARCHES.items()]
    worst.append(asked("a common word of a step", text=_vocabulary()[0], step=last // 2, limit=100))
    worst.append(asked("a common word, by reward", text=_vocabulary()[0], sort="-reward", limit=100))
    worst.append(asked("a common word and a part that none has", text=_vocabulary()[0], part="judge", low=2.0))
    print(f"memory of this process at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    _written(run.pk, rows, options.stored)
    print(json.dumps({"rollouts": {"ours": round(max(worst), 1), "peer": None, "unit": "ms a search", "ratio": None}}))


class ApiTimes:
    """Answers of the API, each several times. The first time of a kind is told apart: it reads from disk."""

    def __init__(self, client: Any, run: int, rounds: int) -> None:
        self._client, self._address, self._rounds = client, f"/api/v1/runs/{run}/rollouts", rounds

    def __call__(self, label: str, more: str = "", **query: Any) -> float:
        """The median in ms."""
        took, found = [], dict[str, Any]()
        for _ in range(self._rounds + 1):
            started = time.perf_counter()
            answer = self._client.get(self._address + more, query)
            took.append(1000 * (time.perf_counter() - started))
            assert answer.status_code == 200, answer.content  # noqa: S101
            found = answer.json()
        rows = len(found["items"] if "items" in found else found["steps"])
        median = statistics.median(took[1:])
        print(f"{label:40}{rows:6,}{took[0]:10.1f}{median:11.1f}{max(took[1:]):10.1f}", flush=True)
        return median


def _cursor(order: str, *values: Any) -> str:
    return urlsafe_b64encode(json.dumps([order, *values]).encode()).decode()


def reader_and_run() -> tuple[Any, Any]:
    """A browser of the owner of a run, and the run."""
    from django.test import Client

    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace
    from webapp.datasets.models import Dataset, DatasetVersion
    from webapp.experiments.models import Experiment, Run
    from webapp.inference.models import RegisteredModel

    user = User.objects.create_user("ada@example.org")
    workspace = create_workspace("Lab", user).workspace
    dataset = Dataset.objects.create(workspace=workspace, name="prompts")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
    model = RegisteredModel.objects.create(workspace=workspace, name="m", source="local", path="/m")
    experiment = Experiment.objects.create(workspace=workspace, name="e")
    given = {"experiment": experiment, "dataset_version": version, "model": model, "recipe": "policy", "config": {}}
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client, Run.objects.create(number=1, **given)


def _filled(run: int, rows: int) -> None:
    """Other processes fill, two at a time, so that this one stays as small as a web process."""
    from django.db import connection

    told, drawn = ProgressLines("copied"), min(rows, PERIOD)
    half = drawn // STEP // 2 * STEP
    with _without_indexes(), ThreadPoolExecutor(2) as pool:
        for done in as_completed(pool.submit(_drawn, run, *part) for part in ((0, half), (half, drawn))):
            told(done.result())
        starts = range(PERIOD, rows, COPIED_AT_ONCE)
        for done in as_completed(pool.submit(_copied, start, min(start + COPIED_AT_ONCE, rows)) for start in starts):
            told(done.result())
        _drawn(run, PERIOD + OWN, rows, 1_000)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('experiments_rollout_id_seq', %s)", [rows])
        cursor.execute("VACUUM (ANALYZE, PROCESS_TOAST false) experiments_rollout")
    told(0)


@contextmanager
def _without_indexes() -> Iterator[None]:
    """Rows come in a fraction of the time while nothing else follows each. The constraints and indexes of the table are made at the end."""
    from django.db import connection

    from webapp.experiments.models import Rollout

    with connection.schema_editor(atomic=False) as editor:
        editor.execute(f"ALTER TABLE experiments_rollout SET ({AUTOVACUUM} = off, toast.{AUTOVACUUM} = off)")
        for constraint in Rollout._meta.constraints:
            editor.remove_constraint(Rollout, constraint)
        for index in Rollout._meta.indexes:
            editor.remove_index(Rollout, index)
        yield
        editor.execute("SET maintenance_work_mem = '1GB'")
        for constraint in Rollout._meta.constraints:
            editor.add_constraint(Rollout, constraint)
        for index in Rollout._meta.indexes:
            editor.add_index(Rollout, index)
        editor.execute("RESET maintenance_work_mem")


class ProgressLines:
    """A line on standard error after each 500,000 rollouts."""

    def __init__(self, did: str) -> None:
        self._did, self._started, self._count = did, time.monotonic(), 0

    def __call__(self, more: int) -> None:
        before, self._count = self._count, self._count + more
        if not more or before // TOLD < self._count // TOLD:
            took = time.monotonic() - self._started
            print(f"{self._count:,} rollouts {self._did} after {took:,.0f} s", file=sys.stderr, flush=True)


def _drawn(run: int, start: int, end: int, by: int = 1) -> int:
    if start >= end:
        return 0
    command = [sys.executable, "-m", "benchmarks.rollouts", "--fill", *map(str, (run, start, end, by))]
    subprocess.run(command, check=True)
    return len(range(start, end, by))


def _copied(start: int, end: int) -> int:
    """Rollouts of later steps whose contents are those of the first ones."""
    from django.db import connection

    first = start % PERIOD
    shift = start - first
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no trigger looks for the run of each
        cursor.execute(COPY_LATER, [shift, shift // STEP, first + 1, first + end - start])
    return end - start


def _indexed(run: int, rows: int, processes: int) -> None:
    from django.db import connection
    from django.db.models import Sum

    from webapp.experiments.models import WordBlock

    told, count = ProgressLines("indexed"), 0
    ends = [rows * part // processes for part in range(processes + 1)]
    workers = [_indexing(run, *part) for part in pairwise(ends)]
    while any(worker.poll() is None for worker in workers):
        time.sleep(1)
        more = (WordBlock.objects.aggregate(size=Sum("size"))["size"] or 0) - count
        if more:
            told(more)
        count += more
    told(0)
    if any(worker.returncode for worker in workers):
        raise RuntimeError("an indexing process failed")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE experiments_wordblock, experiments_blockwords")


def _indexing(run: int, *part: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.rollouts", "--index", *map(str, (run, *part))])


def _index(run: int, *part: int) -> None:
    """As a worker, until nothing waits."""
    import django

    django.setup()
    from webapp.experiments.rollouts import indexing

    while indexing.index(run, *part):
        pass


def _sizes() -> str:
    from django.db import connection

    sizes = {"table": "pg_table_size('experiments_rollout')", "indexes": "pg_indexes_size('experiments_rollout')"}
    sizes["words"] = (
        "pg_total_relation_size('experiments_blockwords') + pg_total_relation_size('experiments_wordblock')"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(sizes.values())}")
        found = zip(sizes, cursor.fetchone(), strict=True)
    return ", ".join(f"{name} {size / 2**30:.2f} GiB" for name, size in found)


def _fill(run: int, start: int, end: int, by: int) -> None:
    import django

    django.setup()
    from django.db import connection

    connection.ensure_connection()
    with connection.connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no trigger looks for the run of each
        with cursor.copy(f"COPY experiments_rollout ({COLUMNS}) FROM STDIN") as to:
            rows = _rows(run, range(start, end, by))
            while batch := "".join(islice(rows, STEP)):
                to.write(batch)


def _rows(run: int, numbers: Sequence[int]) -> Iterator[str]:
    """Lines for COPY."""
    pool, draw = [each.replace("\\", "\\\\") for each in _pool()], random.Random(numbers[0])  # noqa: S311
    for number in numbers:
        prepared = pool[draw.randrange(POOL)]
        step, within = divmod(number, STEP)
        group, index = divmod(within, GROUP)
        reward, judge = round(draw.random(), 3), round(draw.random(), 3)
        prompt = f"e{(step * (STEP // GROUP) + group) % PROMPTS}"
        extra = {f"only{number}", prompt} | ({"seldom"} if number % SELDOM == SELDOM // 2 else set())
        content = prepared % (prompt, group, index, " ".join(extra), reward, judge)
        values = f'{{"judge": {judge}, "form": 1.0}}'
        place = f"{number + 1}\t{run}\t{step}\ttrain\t{group}\t{index}\t{prompt}"
        yield f"{place}\t{reward}\t0.0\tf\t{values}\t{content}\n"


def _pool() -> list[str]:
    """Contents with places for what each rollout has of its own."""
    made = []
    for draw in map(random.Random, range(POOL)):
        content = _content(draw)
        text = json.dumps(content).replace("%", "%%")
        for mark, place in (
            ("KEY", "%s"),
            ('"GROUP"', "%d"),
            ('"INDEX"', "%d"),
            ("OWN", "%s"),
            ('"REWARD"', "%s"),
            ('"JUDGE"', "%s"),
        ):
            text = text.replace(mark, place, 1)
        made.append(text)
    return made


def _content(draw: random.Random) -> dict[str, Any]:
    """The content of a rollout, drawn in the order in which its marks are filled in."""
    said = _words(draw, 90)
    response = " ".join(said)
    verdict = {
        "criterion_id": "c1",
        "met": draw.random() < 0.5,
        "source": "judge",
        "note": " ".join(_words(draw, 15)),
        "raw": "",
    }
    return {
        "phase": "train", "example_key": "KEY", "group": "GROUP", "index": "INDEX", "prompt": " ".join(_words(draw, 40)),
        "response": f"{response} OWN", "finish_reason": "stop", "reward": "REWARD", "advantage": 0.0, "scaffold": "",
        "criteria": [{"text": "Names a colour", "points": 3, "kind": "hard", "verdict": verdict}],
        "parts": [{"name": "judge", "kind": "judge", "value": "JUDGE", "why": ""}, {"name": "form", "kind": "format", "value": 1.0}],
        "excluded": "", "tokens": said, "logprobs": [round(-draw.random(), 4) for _ in said], "ratios": [1.0] * len(said),
        "mask": [1.0] * len(said), "components": {}, "turns": [],
    }  # fmt: skip


def _words(draw: random.Random, count: int) -> list[str]:
    found = draw.choices(_vocabulary(), cum_weights=_weights(VOCABULARY), k=count - count // 10)
    han = draw.choices(_han(), cum_weights=_weights(3000), k=count // 10 * 2)
    return [*found, *map("".join, zip(han[::2], han[1::2], strict=True))]


@cache
def _vocabulary() -> list[str]:
    """Words of two to four syllables, the most frequent first."""
    draw = random.Random(7)  # noqa: S311
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    found = dict.fromkeys("".join(draw.choices(syllables, k=draw.choice((2, 3, 3, 4)))) for _ in range(2 * VOCABULARY))
    return list(found)[:VOCABULARY]


@cache
def _han() -> list[str]:
    return ["的", "一", *(chr(0x4E00 + 5 * place) for place in range(1, 2999))]


@cache
def _weights(count: int) -> list[float]:
    """As often as words of a language are: the n-th as 1/n."""
    total, found = 0.0, []
    for place in range(1, count + 1):
        total += 1 / place
        found.append(total)
    return found


def _written(run: int, rows: int, stored: int) -> None:
    """Rollouts stored per second by the statement of the ingest, 64 at a time."""
    first = rows // STEP + 1
    print(f"{'stored as the ingest does':40}{_stored(run, first, stored):10,.0f} rollouts/s", flush=True)
    worker = _indexing(run)
    print(f"{'the same while a worker indexes':40}{_stored(run, first + 1, stored):10,.0f} rollouts/s", flush=True)
    worker.wait()
    print(f"{'the same if the request indexed them':40}{_stored(run, first + 2, stored, index=True):10,.0f} rollouts/s")


def _stored(run: int, step: int, count: int, index: bool = False) -> float:
    from django.db import transaction

    from trainer.contracts import RolloutRecord
    from webapp.experiments import bulk
    from webapp.experiments.rollouts import indexing

    records = []
    for number in range(count):
        content = _content(random.Random(1_000_000 + number)) | {"example_key": f"e{number}"}  # noqa: S311
        content |= {"group": number // GROUP, "index": number % GROUP, "reward": 0.5}
        content["parts"][0]["value"] = 0.5
        records.append(RolloutRecord.model_validate(content))
    took = 0.0
    for start in range(0, count, 64):
        batch = [bulk.RolloutRow(step, record) for record in records[start : start + 64]]
        began = time.perf_counter()
        with transaction.atomic():
            bulk.upsert_rollouts(run, batch)
            if index:
                indexing.index(run)
        took += time.perf_counter() - began
    return count / took


if __name__ == "__main__":
    main()
