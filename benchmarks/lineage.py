"""Lineage among many rows: `python -m benchmarks.lineage [--nodes N]`.

Starts its own Postgres in a temporary folder with families of 311 rows: a version and nine derived from it one after the other, ten runs on
each, a model of each run, an evaluation of each model, and a report that shows all runs. Then it walks down from the first version of a
family and up from an evaluation and the report, in this process, and prints how long a walk took. It also walks from a model with which all
runs begin, up to the walk's limit, and finds what the page draws around rows.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database

FAMILY, CHAIN, RUNS = 311, 10, 10
ANSWERS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lineage", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with database():
        families = max(1, options.nodes // FAMILY)
        starts = _filled(families)
        print(describe())
        print(f"load of the machine in the last minute: {os.getloadavg()[0]:.1f}")
        print(
            f"{families * FAMILY:,} rows in {families:,} families\n{'':24}{'found':>8}{'median ms':>11}{'worst ms':>10}"
        )
        worst = 0.0
        for label, look in starts:
            took = []
            for _ in range(options.rounds):
                began = time.perf_counter()
                found = look()
                took.append(1000 * (time.perf_counter() - began))
            worst = max(worst, statistics.median(took))
            print(f"{label:24}{found:8,}{statistics.median(took):11.1f}{max(took):10.1f}")
    print(json.dumps({"lineage": {"ours": round(worst, 1), "peer": None, "unit": "ms", "ratio": None}}))


def _filled(families: int) -> list[tuple[str, Callable[[], int]]]:
    """A measurement: a name, and a call that returns how many rows it found."""
    from django.db import connection
    from django.urls import reverse

    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace
    from webapp.experiments.models import Experiment
    from webapp.inference.models import RegisteredModel

    reverse("home")  # loads the modules of all pages, as a web process does before its first request
    workspace = create_workspace("Lab", User.objects.create_user("ada@example.org")).workspace
    base = RegisteredModel.objects.create(workspace=workspace, name="base", source="hub", path="o/m")
    experiment = Experiment.objects.create(workspace=workspace, name="e")
    for family in range(families):
        versions = _versions(workspace, f"d{family}")
        evaluation, report = _trained(experiment, base, versions, family * CHAIN * RUNS)
    person = _answered(workspace, versions)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    first = ("version", versions[0].pk)
    return [
        ("down from a version", partial(_walked, first, "down")),
        ("down from a person", partial(_walked, ("person", person), "down")),
        ("up from an evaluation", partial(_walked, ("evaluation", evaluation), "up")),
        ("up from a report", partial(_walked, ("report", report), "up")),
        ("down from the base", partial(_walked, ("model", base.pk), "down")),
        ("graph around a version", partial(_drawn, workspace.pk, first)),
        ("graph around the base", partial(_drawn, workspace.pk, ("model", base.pk))),
    ]


def _walked(start: tuple[str, int], way: Any) -> int:
    from webapp.lineage.traversal import walk

    return sum(walk(start, way).counts.values())


def _drawn(workspace_id: int, start: tuple[str, int]) -> int:
    from webapp.lineage.drawing import draw_graph
    from webapp.lineage.graph import STEPS, surroundings

    found = surroundings(workspace_id, start, STEPS)
    draw_graph(workspace_id, found, named=True)
    return len(found.columns)


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


def _answered(workspace: Any, versions: list[Any]) -> int:
    """Labels by one person in the first version. The versions of the second half hold as many other examples. Returns the id of the person."""
    from django.utils import timezone

    from webapp.accounts.models import User
    from webapp.annotation.models import Answer, Assignment, Participant, Project, Publication, PublishedCase, Task
    from webapp.datasets.models import Example, VersionMember

    now, person = timezone.now(), User.objects.create_user("bob@example.org")
    project = Project.objects.create(workspace=workspace, name="p", kind="grading", version=versions[0], overlap=1)
    Participant.objects.create(project=project, user=person)
    examples = Example.objects.bulk_create(
        (
            Example(dataset=versions[0].dataset, key=str(i), digest=f"{i:064}", canonical="{}", excerpt="")
            for i in range(2 * ANSWERS)
        ),
        batch_size=5000,
    )
    for place, version in enumerate(versions):
        held = examples[:ANSWERS] if place < CHAIN // 2 else examples[ANSWERS:]
        VersionMember.objects.bulk_create(
            VersionMember(version=version, example=example, position=i) for i, example in enumerate(held)
        )
    tasks = Task.objects.bulk_create(
        Task(project=project, example=each, rank=i, overlap=1) for i, each in enumerate(examples[:ANSWERS])
    )
    seats = Assignment.objects.bulk_create(
        Assignment(task=task, project=project, user=person, state="submitted", claimed_at=now, lease_until=now)
        for task in tasks
    )
    Answer.objects.bulk_create(Answer(assignment=seat, project=project, content={}, submitted_at=now) for seat in seats)
    made = Publication.objects.create(project=project, version=versions[0], choice={}, counts={})
    PublishedCase.objects.bulk_create(
        PublishedCase(publication=made, fate="kept", example=task.example.key, task=task, answers=1) for task in tasks
    )
    return int(person.pk)


def _trained(experiment: Any, base: Any, versions: list[Any], before: int) -> tuple[int, int]:
    """Makes runs, their models, evaluations and a report; returns the ids of the last evaluation and of the report. `before` is the number of
    runs of the experiment so far."""
    from django.utils import timezone

    from webapp.evaluation.models import Evaluation
    from webapp.experiments.models import Artifact, Run
    from webapp.inference.models import RegisteredModel
    from webapp.reports.models import ReportPage, ReportSource

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
    report = ReportPage.objects.create(workspace=workspace, title="r", written_at=timezone.now())
    ReportSource.objects.bulk_create(ReportSource(report=report, run=run) for run in runs)
    return int(made[-1].pk), int(report.pk)


if __name__ == "__main__":
    main()
