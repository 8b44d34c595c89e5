"""Buttons of a run's page: stop, pause, resume, extend, rename, delete."""

from datetime import timedelta

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from trainer.config import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access
from ..models import Run
from ..rewards import forms
from . import early_stop, line_page, schedule, services, spending, time_limit, token_limit, typed_early_stop, utc_times
from .deleted_runs import deletion_text


@member(access.WRITER)
@require_POST
def run_stop(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press finds the run stopping, or over, and changes nothing. `now`: without waiting for its step."""
    membership = require(request)
    does = services.stop_now if request.POST.get("now") else services.stop
    try:
        does(membership, access.run_write(membership, run_id))
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_pause(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press finds it pausing, or paused, and changes nothing."""
    membership = require(request)
    try:
        services.pause(membership, access.run_write(membership, run_id))
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_resume(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press, or a press on an old page, finds the run under way and only shows it."""
    membership = require(request)
    try:
        services.resume(membership, access.run_write(membership, run_id))
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_extend(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """More steps for a run that is over; a second press finds it under way."""
    membership = require(request)
    try:
        services.extend(
            membership, access.run_write(membership, run_id), whole_number(request.POST.get("steps", ""), 9) or 0
        )
    except ConfigInvalid as error:
        messages.error(request, "; ".join(problem.message for problem in error.problems))
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_priority(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets the priority from the page of the run or from the line, and returns there."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    wanted = request.POST.get("priority", "").upper()
    if wanted in Run.Priority.names:
        try:
            services.prioritise(membership, run, Run.Priority[wanted])
        except Problem as problem:
            messages.error(request, problem.message)
    else:
        messages.error(request, "There is no such priority: low, normal or high.")
    return redirect("runs_line") if request.POST.get("from") == "line" else redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_limit(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets the time limit in hours, with a fraction if needed; empty removes it."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    text = request.POST.get("hours", "").strip().replace(",", ".")
    try:
        hours = float(text) if text else None
        limit = None if hours is None else timedelta(hours=hours)
    except (ValueError, OverflowError):
        messages.error(request, "The time limit is a number of hours, such as 1.5; empty lifts it.")
        return redirect("run", run_id)
    try:
        time_limit.change(membership, run, limit, timezone.now())
    except Problem as problem:
        messages.error(request, f"Time limit: {problem.fields.get('seconds', problem.message)}.")
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_tokens(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets the limit of generated tokens; an empty field means no limit."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    text = request.POST.get("tokens", "").strip().replace(",", "")
    limit = whole_number(text, 15) if text else None
    if text and not limit:
        messages.error(request, "The token limit is a whole number above 0, such as 5,000,000; empty lifts it.")
        return redirect("run", run_id)
    try:
        token_limit.change(membership, run, limit)
    except Problem as problem:
        messages.error(request, f"Token limit: {problem.fields.get('tokens', problem.message)}")
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_early(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets when the run stops early; no metric means never."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        early_stop.change(membership, run, typed_early_stop.read(request.POST))
    except Problem as problem:
        messages.error(request, f"Stop early: {'; '.join(problem.fields.values()) or problem.message}.")
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_spending(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets the limit for all judges together; an empty field means no limit."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        spending.change(membership, run, *forms.budget(request.POST))
    except Problem as problem:
        messages.error(request, f"Spending limit: {'; '.join(problem.fields.values()) or problem.message}")
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_schedule(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Sets the time of the start in UTC; empty removes it."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        schedule.change(membership, run, utc_times.read(request.POST.get("not_before", "")))
    except ValueError:
        messages.error(request, "The time to start is a date and a time, such as 2026-11-28 22:00; empty lifts it.")
    except Problem as problem:
        messages.error(request, f"Start not before: {problem.fields.get(schedule.FIELD, problem.message)}")
    return redirect("run", run_id)


@member(access.READER)
@never_cache
@require_GET
def runs_line(request: HttpRequest) -> HttpResponseBase:
    """The line of runs: those that run and those that wait, in which order and until about when."""
    membership = require(request)
    context = {
        "line": line_page.whole(membership.workspace_id),
        "may_write": membership.may(access.WRITER),
    }
    part = "experiments/_line.html" if request.headers.get("HX-Request") else "experiments/line.html"
    return render(request, part, context)


@member(access.WRITER)
@require_POST
def run_rename(request: HttpRequest, run_id: int) -> HttpResponseBase:
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        services.rename(membership, run, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, problem.fields.get("name", problem.message))
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_delete(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """If somebody was faster, the list says who."""
    membership = require(request)
    try:
        run = access.run_write(membership, run_id)
        title = str(run)
        services.delete(membership, run)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("run", run_id)
    except Http404:
        if not (told := deletion_text(membership, run_id)):
            raise
        messages.info(request, told)
        return redirect("runs")
    messages.success(request, f"Deleted {title}.")
    return redirect("runs")
