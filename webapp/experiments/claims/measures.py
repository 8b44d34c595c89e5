"""The measures of a finished run of a study, as its plan defines them."""

from collections import defaultdict

from trainer.metrics.claims import PLANS

from ..lifecycle.states import when_finished
from ..metrics import points
from ..models import ClaimRun, Run


@when_finished
def keep(run: Run) -> None:
    """Stores the measures of a finished run, if it belongs to a study. The same metrics give the same measures."""
    row = ClaimRun.objects.select_related("study").filter(run=run).first()
    if row is None or row.study.plan not in PLANS:
        return
    plan = PLANS[row.study.plan]
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    keys = [each.key for each in points.newest([run.pk])[run.pk] if plan.reads(each.key)]
    for key, step, value in points.values(run.pk, keys):
        curves[key][step] = value
    ClaimRun.objects.filter(pk=row.pk).update(measures=plan.of_run(curves))
