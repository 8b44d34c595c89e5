"""The rule by which a run stops early, as a person types it: on the form of a run, and in a dialog of its page."""

from collections.abc import Mapping

from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from .early_stop import EarlyStop

FIELDS = {"metric": "early_metric", "better": "early_better", "patience": "early_patience", "min_delta": "early_delta"}
"""The name of the input for each field of a rule."""
LABELS = {
    "early_metric": "Stop early: metric",
    "early_better": "Stop early: better",
    "early_patience": "Stop early: patience",
    "early_delta": "Stop early: least improvement",
}


def read(typed: Mapping[str, str]) -> EarlyStop | None:
    """The rule; None without a metric. Raises Invalid at each field that is no number."""
    metric, better, patience, delta = (typed.get(name, "").strip() for name in LABELS)
    if not metric:
        return None
    problems = {}
    count = whole_number(patience.replace(",", ""), 6)
    if count is None:
        problems["patience"] = "must be a whole number above 0"
    try:
        least = float(delta.replace(",", ".")) if delta else 0.0
    except ValueError:
        problems["min_delta"] = "must be a number, such as 0.001; empty: any improvement counts"
    if problems:
        raise Invalid("A run cannot stop early by this rule.", problems)
    return EarlyStop(metric, count or 0, better or None, least)


def write(rule: EarlyStop | None) -> dict[str, str]:
    """The texts of the inputs for a rule."""
    if rule is None:
        return {}
    delta = f"{rule.min_delta:g}" if rule.min_delta else ""
    return dict(zip(LABELS, (rule.metric, rule.better or "", str(rule.patience), delta), strict=True))
