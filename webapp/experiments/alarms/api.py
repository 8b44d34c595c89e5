"""Alarms of a run over the API."""

from typing import Any

from django.http import HttpRequest
from ninja import Status

from webapp.accounts.access import require

from .. import access
from ..parameters import RunId, router, run_of
from . import serializers, services
from .schemas import AlarmAskedOut, AlarmList


@router.get(
    "/runs/{run_id}/alarms",
    response=AlarmList,
    summary="Alarms of a run: signs that its policy games its reward, or learns nothing or badly",
)
def run_alarms(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """One alarm of each sign, the newest step first."""
    return {
        "items": [serializers.alarm(each) for each in services.described_alarms(run_of(request, run_id))],
        "next": None,
    }


@router.post(
    "/runs/{run_id}/alarms/{alarm_id}/people",
    response={202: AlarmAskedOut},
    summary="Send the responses of an alarm to people",
)
def ask_about_alarm(request: HttpRequest, run_id: RunId, alarm_id: RunId) -> Status[dict[str, int]]:
    """People grade them in the project that grades the run's responses, blind to the judge. A second call sends none."""
    membership = require(request)
    alarm = access.alarm_write(membership, run_id, alarm_id)
    return Status(202, {"sent": services.ask(membership, alarm.run, alarm)})
