"""Answers out of a large project: `python -m benchmarks.answers [--answers N] [--exported M]`.

Starts its own Postgres, writes a project of preferences with N (100,000) answers of 100 people over 60 days, and another
with M (10,000), straight into the tables. Then the smaller one's answers are exported as JSON Lines and as CSV, and the
pages for reviewers are opened at a tenth of the larger project and at all of it, once the job that computes their figures
has run: the times of both should be alike. Label Studio's export of 10,000 answers took 22 to 40 s, measured elsewhere on
2 cores.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.annotation import _people, _project, _version, _workspace
from benchmarks.datasets import database, quantile
from benchmarks.machine import describe
from benchmarks.peers import ELSEWHERE

ANSWERS, EXPORTED, PEOPLE = 100_000, 10_000, 100
LABEL_STUDIO = 22.0  # seconds
READS = 10
PAGES = ("people", "agreement", "review", "answers")
TASKS = """
    INSERT INTO annotation_task (project_id, example_id, subject, rank, overlap, taken, done)
    SELECT %(project)s, example_id, '{"a": "a", "b": "b"}', position, 2, 2, 2 FROM datasets_versionmember
    WHERE version_id = %(version)s AND position < %(tasks)s
"""
SEATS = """
    INSERT INTO annotation_assignment (task_id, project_id, user_id, guidelines_id, state, "order", claimed_at,
        lease_until, submitted_at, draft_revision, skip_reason, sent_back, seconds)
    SELECT task.id, task.project_id, people.ids[1 + (task.rank::int * 2 + seat) %% cardinality(people.ids)],
        guidelines.id, 'submitted', '[0, 1]', at, at, at, 0, '', '', 20 + task.rank::int %% 30
    FROM annotation_task AS task
    CROSS JOIN generate_series(0, 1) AS seat
    CROSS JOIN (SELECT array_agg(user_id ORDER BY user_id) AS ids FROM annotation_participant
                WHERE project_id = %(project)s) AS people
    JOIN annotation_guidelines AS guidelines ON guidelines.project_id = task.project_id
    CROSS JOIN LATERAL (SELECT now() - interval '1 hour' * (task.rank::int %% 1440) AS at) AS times
    WHERE task.project_id = %(project)s
"""
SAID = """
    INSERT INTO annotation_answer (assignment_id, project_id, revision, current, content, guidelines_id, suggestion,
        suggested_by, seconds, submitted_at)
    SELECT id, project_id, 1, true, jsonb_build_object('verdict', 'compared', 'strength', id %% 7 - 3, 'dimensions',
        '{}'::jsonb, 'reasons', jsonb_build_array(jsonb_build_object('text', 'It names the source of ' || id))),
        guidelines_id, 'never', '', seconds, submitted_at
    FROM annotation_assignment WHERE project_id = %(project)s
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--exported", type=int, default=EXPORTED)
    options = parser.parse_args()
    with database():
        found = measure(options.answers, options.exported)
    print(describe())
    for name, (value, unit, _) in found.items():
        print(f"{name:32}{value:12,.2f} {unit}")
    rows = {
        name: {"ours": round(ours, 3), "peer": peer, "unit": unit, "ratio": peer and round(peer / ours, 1)}
        for name, (ours, unit, peer) in found.items()
    }
    print(json.dumps(rows))


def measure(answers: int, exported: int) -> dict[str, tuple[float, str, float | None]]:
    import django

    django.setup()
    from webapp.annotation.agreement import pseudonyms, refresh
    from webapp.annotation.models import TaskReview
    from webapp.annotation.publishing import answers as written

    membership = _workspace()
    version = _version(membership, max(answers, exported) // 2)
    small, tenth, large = (
        _answered(membership, version, name, count)
        for name, count in (("exported", exported), ("tenth", answers // 10), ("large", answers))
    )
    (lines, cpu), (table, table_cpu) = (
        timed(partial(drained, read, small, pseudonyms.faces(small))) for read in (written.lines, written.table_rows)
    )
    job, job_cpu = timed(partial(refresh.bring_up_to_date, large))
    refresh.bring_up_to_date(tenth)
    # no worker is here to match reasons, so pages must not queue a job for it
    TaskReview.objects.update(matcher="nobody")
    return {
        "answers_export": (lines, f"s, {ELSEWHERE}", LABEL_STUDIO),
        "answers_export_processor": (cpu, "s", None),
        "answers_export_csv": (table, "s", None),
        "answers_export_csv_processor": (table_cpu, "s", None),
        "figures_job": (job, "s", None),
        "figures_job_processor": (job_cpu, "s", None),
        **_opened(membership.user, tenth, "_at_a_tenth"),
        **_opened(membership.user, large, ""),
    }


def _opened(user: Any, project: Any, suffix: str) -> dict[str, tuple[float, str, float | None]]:
    """{page: p95 of the milliseconds from the request to the whole page}."""
    from django.test import Client

    browser = Client(headers={"host": "localhost"})
    found: dict[str, tuple[float, str, float | None]] = {}
    browser.force_login(user)
    for page in PAGES:
        read = partial(browser.get, f"/projects/{project.pk}/{page}")
        if read().status_code != 200:
            raise RuntimeError(f"the page {page} did not open")
        times = [timed(read)[0] for _ in range(READS)]
        found[f"{page}_page{suffix}"] = (1000 * quantile(times, 0.95), "ms", None)
    return found


def _answered(membership: Any, version: Any, name: str, answers: int) -> Any:
    """A project in which every task has two answers."""
    from django.db import connection

    from webapp.annotation.models import Answer, Project

    project = Project.objects.get(pk=_project(membership, version, name, 2))
    _people(membership, project.pk, PEOPLE, name)
    values = {"project": project.pk, "version": version.pk, "tasks": answers // 2}
    with connection.cursor() as cursor:
        for statement in (TASKS, SEATS, SAID):
            cursor.execute(statement, values)
        cursor.execute("ANALYZE annotation_task, annotation_assignment, annotation_answer")
    if Answer.objects.filter(project=project).count() != answers // 2 * 2:
        raise RuntimeError("the project was not filled")
    return project


def drained(read: Callable[..., str], project: Any, people: Any) -> None:
    from webapp.annotation.publishing import answers as written

    for part in written.at_this_moment(project, False).parts():
        read(project, people, part)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall time and of our CPU time; the database has its own."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    main()
