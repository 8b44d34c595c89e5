"""The page of an episode: its turns as a tree, of which the page holds some hundred at a time."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.core.requests.numbers import whole_number

from .. import access
from . import episodes, serializers

PAGE = 100


@member(access.READER)
@never_cache
@require_GET
def rollout_episode(request: HttpRequest, run_id: int, rollout_id: int) -> HttpResponseBase:
    """Opens at the turn that the address names, counted from 1. The page asks the API for the others."""
    rollout = access.rollout_read(require(request), run_id, rollout_id)
    start = ((whole_number(request.GET.get("turn", ""), 9) or 1) - 1) // PAGE * PAGE
    back = f"?step={rollout.step}&phase={rollout.phase}&group={rollout.group}"
    context = {
        "run": rollout.run,
        "rollout": rollout,
        "prompt": rollout.content.get("prompt", ""),
        "facts": episodes.facts(rollout),
        "data": serializers.turns(episodes.page(rollout, start, PAGE)),
        "back": reverse("run_tab", args=[run_id, "rollouts"]) + back,
    }
    return render(request, "experiments/episode.html", context)
