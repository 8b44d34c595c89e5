"""What the finished run of a study is worth, by the readings that its plan names."""

from collections import defaultdict

from trainer.metrics.claims import PLANS
from trainer.metrics.claims.curves import curves_of, measured

from ..lifecycle.states import when_finished
from ..models import ClaimRun, MetricPoint, Run


@when_finished
def keep(run: Run) -> None:
    """Writes the measures of a run that has finished, where it belongs to a study. The same curves give the same measures."""
    row = ClaimRun.objects.select_related("study").filter(run=run).first()
    if row is None or row.study.plan not in PLANS:
        return
    wanted = list(PLANS[row.study.plan].measures())
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    points = MetricPoint.objects.filter(run=run, key__in=curves_of(wanted))
    for key, step, value in points.values_list("key", "step", "value"):
        if value is not None:
            curves[key][step] = value
    ClaimRun.objects.filter(pk=row.pk).update(measures=measured(curves, wanted))
