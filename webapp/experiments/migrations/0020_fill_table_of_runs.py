"""The values of runs that were there before the table sorted and filtered by them."""

import json
import math
from hashlib import sha256

from django.db import migrations

# of each recipe as it stood: what its list shows as its result, and what else where that is not measured
RESULTS = {
    "policy": ("eval/rubric_score", "eval/reward"),
    "sft": ("eval/loss",),
    "reward_model": ("eval/accuracy",),
    "dpo": ("eval/accuracy",),
    "iterative_dpo": ("eval/score",),
    "judge": ("eval/accuracy",),
    "rubric_writer": ("eval/preference_accuracy", "eval/reward"),
    "alternating": ("eval/accuracy", "eval/reward"),
}

METRIC_COLUMNS = """
INSERT INTO experiments_runcolumn (workspace_id, source, path)
SELECT DISTINCT workspace_id, 'metric', key
FROM experiments_metricpoint AS point
JOIN experiments_run AS run ON run.id = point.run_id
JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
WHERE value IS NOT NULL
ON CONFLICT DO NOTHING
"""

METRICS = """
INSERT INTO experiments_runvalue (run_id, column_id, number, low, high, step)
SELECT found.run_id, known.id, last, low, high, found.step
FROM (
    SELECT run_id, key, (array_agg(value ORDER BY step DESC))[1] AS last, min(value) AS low, max(value) AS high,
        max(step) AS step
    FROM experiments_metricpoint WHERE value IS NOT NULL GROUP BY run_id, key
) AS found
JOIN experiments_run AS run ON run.id = found.run_id
JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
JOIN experiments_runcolumn AS known
    ON known.workspace_id = experiment.workspace_id AND known.source = 'metric' AND known.path = found.key
ON CONFLICT DO NOTHING
"""


def flat(config, prefix=""):
    if isinstance(config, dict) and config:
        items = [(str(key), value) for key, value in config.items()]
    elif isinstance(config, list) and any(isinstance(item, (dict, list)) for item in config):
        items = [(str(place), item) for place, item in enumerate(config)]
    else:
        return {prefix: config}
    out = {}
    for key, value in items:
        out.update(flat(value, f"{prefix}.{key}" if prefix else key))
    return out


def worded(value):
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(worded, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def family(run):
    rest = {key: value for key, value in run.config.items() if key != "seed"}
    text = json.dumps([run.recipe, rest, run.dataset_version_id, run.model_id], sort_keys=True, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:32]


def of_the_run(run):
    """(source, path, number, text)"""
    for path, value in flat(run.config).items():
        if not path or len(path) > 200:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if math.isfinite(value):
                yield "config", path, float(value), None
        else:
            yield "config", path, None, worded(value)[:200].replace("\0", "")
    key = next((key for key in RESULTS.get(run.recipe, ()) if key in run.summary), None)
    if key is not None and run.summary[key] is not None:
        yield "run", "result", run.summary[key], None
        if (first := run.summary.get(f"{key}:first")) is not None:
            yield "run", "gain", run.summary[key] - first, None
    if run.state in ("stopped", "finished", "failed") and run.started_at and run.ended_at:
        yield "run", "took", (run.ended_at - run.started_at).total_seconds(), None


def fill(apps, schema_editor):
    Run, RunColumn, RunValue = (apps.get_model("experiments", name) for name in ("Run", "RunColumn", "RunValue"))
    known = {}
    for run in Run.objects.select_related("experiment").order_by("id").iterator(chunk_size=200):
        workspace, rows = run.experiment.workspace_id, []
        Run.objects.filter(pk=run.pk).update(family=family(run))
        for source, path, number, text in of_the_run(run):
            place = (workspace, source, path)
            if place not in known:
                known[place] = RunColumn.objects.get_or_create(workspace_id=workspace, source=source, path=path)[0].pk
            rows.append(RunValue(run=run, column_id=known[place], number=number, text=text))
        RunValue.objects.bulk_create(rows, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0019_table_of_runs"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(METRIC_COLUMNS, migrations.RunSQL.noop),
        migrations.RunSQL(METRICS, migrations.RunSQL.noop),
    ]
