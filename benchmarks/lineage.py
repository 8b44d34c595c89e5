"""Lineage among many rows: `python -m benchmarks.lineage [--nodes N]`.

Starts its own Postgres in a temporary folder with families of 310 rows: a version and nine derived from it one after the other, ten runs on
each, a model of each run and an evaluation of each model. Then it walks down from the first version of a family and up from an evaluation,
in this process, and prints how long a walk took. It also walks from a model with which all runs begin, up to the walk's limit.
"""

import argparse
import json
import statistics
import time
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database

FAMILY, CHAIN, RUNS = 310, 10, 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lineage", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with database():
        families = max(1, options.nodes // FAMILY)
        starts = _filled(families)
        from webapp.lineage.walking import walk

        print(describe())
        print(
            f"{families * FAMILY:,} rows in {families:,} families\n{'':24}{'found':>8}{'median ms':>11}{'worst ms':>10}"
        )
        worst = 0.0
        for label, start, way in starts:
            took = []
            for _ in range(options.rounds):
                began = time.perf_counter()
                found = sum(walk(start, way).counts.values())
                took.append(1000 * (time.perf_counter() - began))
            worst = max(worst, statistics.median(took))
            print(f"{label:24}{found:8,}{statistics.median(took):11.1f}{max(took):10.1f}")
    print(json.dumps({"lineage": {"ours": round(worst, 1), "peer": None, "unit": "ms", "ratio": None}}))


def _filled(families: int) -> list[tuple[str, tuple[str, int], Any]]:
    from django.db import connection

    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace
    from webapp.experiments.models import Experiment
    from webapp.inference.models import RegisteredModel

    workspace = create_workspace("Lab", User.objects.create_user("ada@example.org")).workspace
    base = RegisteredModel.objects.create(workspace=workspace, name="base", source="hub", path="o/m")
    experiment = Experiment.objects.create(workspace=workspace, name="e")
    for family in range(families):
        versions = _versions(workspace, f"d{family}")
        evaluation = _trained(experiment, base, versions, family * CHAIN * RUNS)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return [
        ("down from a version", ("version", versions[0].pk), "down"),
        ("up from an evaluation", ("evaluation", evaluation), "up"),
        ("down from the base", ("model", base.pk), "down"),
    ]


def _versions(workspace: Any, name: str) -> list[Any]:
    from webapp.datasets.models import Dataset, DatasetVersion

    dataset, made = Dataset.objects.create(workspace=workspace, name=name), []
    lineage: dict[str, Any] = {"from": "import"}
    for number in range(1, CHAIN + 1):
        row = DatasetVersion(dataset=dataset, number=number, state="frozen", digest=str(number), lineage=lineage)
        row.save()
        made.append(row)
        lineage = {"from": "filter", "base": number, "base_id": row.pk}
    return made


def _trained(experiment: Any, base: Any, versions: list[Any], before: int) -> int:
    """Make runs, their models and evaluations; returns the id of the last evaluation. `before` is the number of runs of the experiment so
    far.
    """
    from webapp.evaluation.models import Evaluation
    from webapp.experiments.models import Artifact, Run
    from webapp.inference.models import RegisteredModel

    workspace, shared = (
        experiment.workspace,
        {"experiment": experiment, "recipe": "policy", "config": {}, "model": base},
    )
    runs = Run.objects.bulk_create(
        Run(number=before + place + 1, dataset_version=versions[place // RUNS], **shared)
        for place in range(CHAIN * RUNS)
    )
    models = RegisteredModel.objects.bulk_create(
        RegisteredModel(workspace=workspace, name=f"m{run.pk}", source="run", path="p", base=base) for run in runs
    )
    Artifact.objects.bulk_create(
        Artifact(run=run, step=1, role="model", path="p", bytes=1, digest="d", registered=model)
        for run, model in zip(runs, models, strict=True)
    )
    made = Evaluation.objects.bulk_create(
        Evaluation(
            workspace=workspace, name="e", recipe="policy", config={"writers": [{"model": each.pk}]}, benchmark="b"
        )
        for each in models
    )
    return int(made[-1].pk)


if __name__ == "__main__":
    main()
