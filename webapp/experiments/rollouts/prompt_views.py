"""The page of one prompt through training. Its scripts read the steps and the responses over the API."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require

from .. import access


@member(access.READER)
@never_cache
@require_GET
def run_prompt(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The page of one prompt. Without a key, it leads to the rollouts of the run, where a prompt is chosen."""
    run = access.run_read(require(request), run_id)
    key = request.GET.get("key", "")
    if not key:
        return redirect("run_tab", run_id, "rollouts")
    return render(request, "experiments/run_prompt.html", {"run": run, "key": key})
