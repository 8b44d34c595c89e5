"""Alarms of a run on its page."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Problem

from .. import access
from ..models import OVER
from . import services


@member(access.READER)
@never_cache
@require_GET
def run_alarms(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment: the alarms of a run as they come."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    found = services.described_alarms(run)
    context = {"run": run, "alarms": found, "alarms_title": services.heading(found)}
    context["may_write"] = membership.may(Role.RESEARCHER)
    return render(request, "experiments/_alarms.html", context | {"is_over": run.state in OVER})


@member(access.WRITER)
@require_POST
def run_alarm_people(request: HttpRequest, run_id: int, alarm_id: int) -> HttpResponseBase:
    """Makes tasks for people from an alarm, in one click."""
    membership = require(request)
    alarm = access.alarm_write(membership, run_id, alarm_id)
    try:
        sent = services.ask(membership, alarm.run, alarm)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("run", run_id)
    told = f"{with_noun(sent, 'responses')} went to people." if sent else "These responses went to people before."
    messages.success(request, told)
    return redirect("run", run_id)
