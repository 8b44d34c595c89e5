"""The table of runs at size: `python -m benchmarks.runs_table [--runs N]`.

Starts a Postgres of its own in a temporary folder and fills it with runs: the whole config of the policy recipe and 24 metrics each,
200 experiments, tags, a tenth archived, and another workspace with a tenth as many. Then it asks for pages in this process as a
browser would (the HTML of 50 rows with every query of it, without the network), each several times, first and following pages. The time of
the processors for a page, of this process and the database together, hardly depends on what else runs on the machine.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

from benchmarks.machine import cpu_seconds, describe
from webapp.localstack.postgres import Postgres

RUNS = 100_000
ROUNDS = 8
METRICS = 24
COLUMNS = "state,step,result,config.optim.lr,eval/score0,max(eval/score0),config.seed,took"
FEW = "state:finished tag:ablation config.optim.lr<1e-5 eval/score0>0.97"
MANY = "-tag:ablation max(eval/score2)>0.1"
CHANGED = 200
CHANGING = f"folded, {CHANGED} just changed"
PAGES = {
    "newest": {},
    "by a metric": {"sort": "-eval/score0"},
    "by a metric's best, upward": {"sort": "max(eval/score1)"},
    "by a config value": {"sort": "config.optim.lr"},
    "by name": {"sort": "name"},
    "by model": {"sort": "model"},
    "by time taken": {"sort": "-took"},
    "one state": {"q": "state:failed"},
    "config and metric": {"q": "config.optim.lr<1e-5 eval/score0>0.9"},
    "few, by a metric": {"q": FEW, "sort": "-eval/score1"},
    "many, by a metric": {"q": MANY, "sort": "-eval/score3"},
    "grouped by tag": {"group": "tag"},
    "grouped by seed, by a metric": {"group": "config.seed", "sort": "-eval/score0"},
    "grouped by many values": {"group": "config.optim.lr"},
    "few, grouped": {"q": "tag:ablation config.optim.lr<1e-5 eval/score0>0.97", "group": "config.seed"},
    "grouped by tag, in its order": {"group": "tag", "sort": "tag"},
    "grouped by experiment": {"group": "experiment", "sort": "experiment"},
    "grouped by model, by a metric": {"group": "model", "sort": "-max(eval/score0)"},
    "grouped by state": {"group": "state"},
    "folded": {"fold": "seeds"},
    "folded, by a metric": {"fold": "seeds", "sort": "-eval/score0"},
    "folded, by a metric's best": {"fold": "seeds", "sort": "max(eval/score1)"},
    "folded, by a config value": {"fold": "seeds", "sort": "config.optim.lr"},
    "folded, by a value of all": {"fold": "seeds", "sort": "config.steps"},
    "folded, by a config's text": {"fold": "seeds", "sort": "-config.model.name"},
    "folded, oldest first": {"fold": "seeds", "sort": "created"},
    "folded, many, by a config value": {"fold": "seeds", "q": MANY, "sort": "-config.optim.lr"},
    CHANGING: {"fold": "seeds", "sort": "-eval/score0"},
    "folded, few, by a metric": {"fold": "seeds", "q": FEW, "sort": "-eval/score1"},
    "folded, many, by a metric": {"fold": "seeds", "q": MANY, "sort": "-eval/score3"},
    "none, by a metric": {"q": "tag:ablation eval/score0>2", "sort": "-eval/score1"},
    "words": {"q": "sweep-77"},
    "not a word of config": {"q": "-config.model.name:none age<100d"},
}

_NEXT = re.compile(r'href="\?([^"]*)" rel="next"')

# integers mixed so that neighbours differ: 0 <= noise < 1
NOISE = "((hashint4({of} # {salt})::bigint + 2147483648) / 4294967296.0)"
OF_RUN, OF_FAMILY = "run.id::int", "(run.number / 4)::int"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runs_table", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each page is asked for")
    options = parser.parse_args()
    with database():
        _measure(options.runs, options.rounds)


@contextmanager
def database() -> Iterator[None]:
    """Our own Postgres with the product's schema, and Django set up for it."""
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder:
        var = Path(folder)
        var.chmod(0o755)  # as root, Postgres runs as someone else and must reach its folder
        postgres = Postgres(var, durable=False)
        postgres.start()
        os.environ.update(
            DJANGO_SETTINGS_MODULE="webapp.settings",
            TOUCHSTONE_VAR=str(var),
            DATABASE_URL=postgres.url(),
            LOG_LEVEL="WARNING",
        )
        try:
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], check=True)
            import django
            from django.conf import settings

            # no Redis runs here: rate limits are counted in this process
            settings.CACHES["default"] = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
            django.setup()
            yield
        finally:
            postgres.stop()


def _measure(runs: int, rounds: int) -> None:
    client, values = filled(runs, METRICS)
    print(describe())
    print(f"{runs:,} runs, {values:,} values; a page of 50 rows, first and second, ms")
    print(f"{'':32}{'p50':>8}{'p95':>8}{'worst':>8}{'processors':>12}")
    everything: list[float] = []
    for label, query in PAGES.items():
        _change(CHANGED if label == CHANGING else 0)
        before = cpu_seconds(os.getpid())
        took = asked(client, query, rounds)
        used = 1000 * (cpu_seconds(os.getpid()) - before) / (len(took) + 1)
        everything += took
        print(f"{label:32}{_at(took, 0.5):8.1f}{_at(took, 0.95):8.1f}{max(took):8.1f}{used:12.1f}", flush=True)
    counted = [_timed(client, "/experiments/count", {"q": PAGES["many, by a metric"]["q"]}) for _ in range(rounds)]
    print(f"{'how many, beside the page':32}{_at(counted, 0.5):8.1f}{_at(counted, 0.95):8.1f}{max(counted):8.1f}")
    p95 = _at(everything, 0.95)
    print(f"{'all pages':32}{_at(everything, 0.5):8.1f}{p95:8.1f}{max(everything):8.1f}")
    print(json.dumps({"runs_table": {"ours": round(p95, 1), "peer": None, "unit": "ms p95", "ratio": None}}))


def asked(client: Any, query: dict[str, str], rounds: int) -> list[float]:
    took = []
    wanted = {"columns": COLUMNS, **query}
    _timed(client, "/experiments", wanted)  # the first page of a kind reads from disk and compiles templates
    for _ in range(rounds):
        took.append(_timed(client, "/experiments", wanted))
        if following := _NEXT.search(client.last.content.decode()):
            took.append(_timed(client, f"/experiments?{unescape(following[1])}", {}))
    return took


def _timed(client: Any, path: str, query: dict[str, str]) -> float:
    started = time.perf_counter()
    client.last = client.get(path, query or None)
    took = time.perf_counter() - started
    assert client.last.status_code == 200, client.last.content  # noqa: S101
    return 1000 * took


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def filled(runs: int, metrics: int) -> tuple[Any, int]:
    """A browser of somebody in the large workspace, and how many values there are."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client

    from trainer.config import RECIPES, resolve
    from webapp.accounts.workspaces.services import create_workspace

    config = resolve("policy", dict(RECIPES["policy"].example)).model_dump(mode="json")
    people = get_user_model().objects
    users = [people.create_user(f"{name}@example.org", name=name) for name in ("large", "small")]
    for user, count in zip(users, (runs, max(runs // 10, 1)), strict=True):
        _fill(create_workspace(user.name, user).workspace_id, user.pk, count, config, metrics)
    _keep_means()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT count(*) FROM experiments_runvalue")
        values = cursor.fetchone()[0]
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(users[0], backend="django.contrib.auth.backends.ModelBackend")
    return client, values


def _keep_means() -> None:
    """Stores the means by which folded rows are ordered, as workers do after an upgrade: while this fills the tables, no trigger does."""
    from django.db import connection

    from webapp.experiments.table import family_means

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(_ALL_CHANGED)
    before = cpu_seconds(os.getpid())
    while family_means.keep_oldest():
        pass
    print(f"the means of all folded rows took {cpu_seconds(os.getpid()) - before:.1f} s of the processors", flush=True)


def _change(rows: int) -> None:
    """So many folded rows have a new value, and no worker has computed their means again."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, [rows])


def _fill(workspace: int, user: int, runs: int, config: dict[str, Any], metrics: int) -> None:
    from django.db import connection, transaction

    from webapp.datasets.models import Dataset, DatasetVersion
    from webapp.experiments import table_facts
    from webapp.experiments.models import Experiment
    from webapp.inference.models import RegisteredModel

    dataset = Dataset.objects.create(workspace_id=workspace, name="prompts")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
    models = [
        RegisteredModel.objects.create(workspace_id=workspace, name=f"m{i}", source="local", path=f"/{i}")
        for i in range(5)
    ]
    experiments = [Experiment.objects.create(workspace_id=workspace, name=f"work {i}") for i in range(200)]
    given: dict[str, Any] = {
        "runs": runs, "first": experiments[0].pk, "version": version.pk, "model": models[0].pk, "user": user,
        "config": json.dumps(config), "workspace": workspace,
    }  # fmt: skip
    held = table_facts.config_facts(config)
    paths = json.dumps([vars(fact) for fact in held])
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL session_replication_role = replica"
        )  # the foreign keys are right, because this code fills the tables
        cursor.execute(_RUNS, given)
        cursor.execute(_TAGS, given)
        cursor.execute(_COLUMNS, given | {"facts": paths, "metrics": metrics})
        cursor.execute(_CONFIG, given | {"facts": paths})
        cursor.execute(_METRICS, given)


_ALL_CHANGED = """
INSERT INTO experiments_familychange (experiment_id, kin) SELECT DISTINCT experiment_id, family FROM experiments_run
"""
_CHANGED = """
INSERT INTO experiments_familychange (experiment_id, kin)
SELECT experiment_id, family FROM experiments_run WHERE archived_at IS NULL ORDER BY id LIMIT 4 * %s
"""
_RUNS = """
INSERT INTO experiments_run (
    experiment_id, number, name, recipe, config, dataset_version_id, model_id, state, state_reason, state_at, attempt,
    attempt_at, token_digest, ray_job_id, tries, launch_digest, start_step, step, steps_total, phase, phase_done, phase_total,
    summary, last_seq, created_by_id, created_at, started_at, ended_at, archived_at, family
)
SELECT %(first)s + i / 4 %% 200, i, 'sweep-' || i / 8, 'policy', %(config)s::jsonb, %(version)s, %(model)s + i %% 5,
    (ARRAY['finished', 'finished', 'finished', 'finished', 'finished', 'finished', 'failed', 'stopped'])[1 + i %% 8], '',
    now(), 1, now(), '', '', 0, '', 0, 100, 100, '', 0, 0, '{"eval/rubric_score": 0.5}', 100, %(user)s,
    now() - i * interval '1 minute', now() - i * interval '1 minute', now() - (i - 7) * interval '1 minute',
    CASE WHEN i %% 10 = 0 THEN now() END, md5((i / 4)::text)
FROM generate_series(1, %(runs)s) AS i
"""
_TAGS = """
INSERT INTO experiments_runtag (run_id, name)
SELECT run.id, word FROM experiments_run AS run JOIN experiments_experiment AS e ON e.id = run.experiment_id,
    unnest(ARRAY['ablation', 'paper', 'night']) AS word
WHERE e.workspace_id = %(workspace)s AND (run.id + length(word)) %% 7 = 0
"""
_COLUMNS = """
INSERT INTO experiments_runcolumn (workspace_id, source, path)
SELECT %(workspace)s, 'config', path FROM jsonb_to_recordset(%(facts)s::jsonb) AS given(path text)
UNION ALL SELECT %(workspace)s, 'metric', 'eval/score' || i FROM generate_series(0, %(metrics)s - 1) AS i
UNION ALL SELECT %(workspace)s, 'run', name FROM unnest(ARRAY['result', 'gain', 'took']) AS name
"""
_OURS = """
FROM experiments_run AS run JOIN experiments_experiment AS e ON e.id = run.experiment_id
JOIN experiments_runcolumn AS known ON known.workspace_id = e.workspace_id
"""
_CONFIG = f"""
INSERT INTO experiments_runvalue (run_id, column_id, number, text)
SELECT run.id, known.id, CASE
    WHEN path = 'optim.lr' THEN 10 ^ (-3 - 4 * {NOISE.format(of=OF_FAMILY, salt="known.id::int")})
    WHEN path = 'seed' THEN run.id %% 4 ELSE given.number END, given.text
{_OURS} AND known.source = 'config' JOIN jsonb_to_recordset(%(facts)s::jsonb) AS given(path text, number float8, text text) USING (path)
WHERE e.workspace_id = %(workspace)s
"""  # noqa: S608  ours
_METRICS = f"""
INSERT INTO experiments_runvalue (run_id, column_id, number, low, high, step)
SELECT id, column_id, value, CASE WHEN source = 'metric' THEN value / 2 END,
    CASE WHEN source = 'metric' THEN value + (1 - value) / 3 END, 100
FROM (
    SELECT run.id, known.id AS column_id, known.source, {NOISE.format(of=OF_RUN, salt="known.id::int")} AS value
    {_OURS} AND known.source <> 'config' WHERE e.workspace_id = %(workspace)s
) AS found
"""  # noqa: S608  ours


if __name__ == "__main__":
    main()
