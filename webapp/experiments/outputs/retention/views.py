"""The page of the rule under Settings, and the button of a run that keeps its checkpoints."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.pages import confirmation

from ... import access
from . import services
from .forms import CheckpointRuleForm
from .preview import preview


@member(Role.OWNER)
@never_cache
@require_http_methods(["GET", "POST"])
def checkpoint_rule(request: HttpRequest) -> HttpResponseBase:
    """`?days=` shows a preview of these days. The button that switches the rule on is below the preview, and asks once more."""
    membership = require(request)
    rule = services.rule(membership)
    if request.method == "POST":
        form = CheckpointRuleForm(request.POST)
        if form.is_valid():
            on, days = request.POST.get("on") == "yes", form.cleaned_data["days"]
            if on and (asked := confirmation.question(request, **_question(membership, days))):
                return asked
            services.change(membership, on, days)
            told = f"Checkpoints are deleted {with_noun(days, 'days')} after the end of their run, unless something needs them."
            messages.success(request, told if on else "The rule is off. Nothing more is deleted.")
            return redirect("checkpoint_rule")
    else:
        form = CheckpointRuleForm({"days": request.GET.get("days", rule.days)})
    shown = preview(membership.workspace_id, form.cleaned_data["days"]) if form.is_valid() else None
    context = {"form": form, "rule": rule, "preview": shown}
    return render(request, "experiments/retention/rule.html", context, status=200 if form.is_valid() else 422)


def _question(membership: Membership, days: int) -> dict[str, str]:
    found = preview(membership.workspace_id, days)
    what = f"{with_noun(found.checkpoints, 'checkpoints')} of {with_noun(found.runs, 'runs')}, {filesizeformat(found.bytes)}"
    text = (
        f"Now these would be deleted: {what}. Later, checkpoints of other runs follow. Deleted files cannot be restored, except from a backup. "
        "You can switch the rule off at any time."
    )
    title = f"Delete checkpoints {with_noun(days, 'days')} after the end of a run?"
    return {"title": title, "text": text, "yes": "Switch on", "no": "Leave it off", "back": reverse("checkpoint_rule")}


@member(access.WRITER)
@require_POST
def run_keep(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Marks the run, or takes the mark away, as the pressed button says in `keep`: "yes" or "no"."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    services.mark(membership, run, request.POST.get("keep") == "yes")
    return redirect("run_tab", run_id, "lineage")
