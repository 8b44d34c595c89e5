"""What the finished run of a study is worth, by what its plan measures."""

from collections import defaultdict

from trainer.metrics.claims import PLANS

from ..lifecycle.states import when_finished
from ..models import ClaimRun, MetricPoint, Run


@when_finished
def keep(run: Run) -> None:
    """Writes the measures of a run that has finished, where it belongs to a study. The same metrics give the same measures."""
    row = ClaimRun.objects.select_related("study").filter(run=run).first()
    if row is None or row.study.plan not in PLANS:
        return
    plan = PLANS[row.study.plan]
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    told = MetricPoint.objects.filter(run=run)
    keys = [key for key in told.order_by().values_list("key", flat=True).distinct() if plan.reads(key)]
    for key, step, value in told.filter(key__in=keys).values_list("key", "step", "value"):
        if value is not None:
            curves[key][step] = value
    ClaimRun.objects.filter(pk=row.pk).update(measures=plan.of_run(curves))
