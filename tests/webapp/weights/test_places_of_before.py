"""Jobs and evaluations in a database from before the line existed: waiting ones continue to wait, and ones that did not begin wait for
nothing.
"""

from datetime import timedelta
from importlib import import_module
from typing import Any

from django.db import connection
from django.utils import timezone

from webapp.weights import services
from webapp.weights.line import waiting
from webapp.weights.models import WeightsJob


def test_what_waited_or_was_under_way_before_the_upgrade_goes_on(team):
    then = timezone.now() - timedelta(hours=2)
    states: dict[str, dict[str, Any]] = {
        "waits": {"state": "queued", "next_try_at": then},
        "runs": {"state": "running", "ray_job_id": "weights-1-1"},
        "over": {"state": "finished"},
        "empty": {"state": "queued"},
    }
    for key, fields in states.items():
        row = WeightsJob.objects.create(workspace=team.workspace, kind="judge", title=key, key=key, **fields)
        WeightsJob.objects.filter(pk=row.pk).update(created_at=then)
    with connection.cursor() as cursor:
        cursor.execute(import_module("webapp.weights.migrations.0005_places_in_the_line").ASKED)
    rows = {row.key: row for row in WeightsJob.objects.all()}
    assert {key: row.asked_at for key, row in rows.items()} == dict.fromkeys(states, then) | {"empty": None}
    assert list(waiting()) == [rows["waits"]] and services.waits_for_items(rows["empty"])
