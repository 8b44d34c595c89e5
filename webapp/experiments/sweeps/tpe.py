"""Tree-structured Parzen estimator (Bergstra et al., 2011) by Optuna, asked for one configuration at a time.

Optuna keeps nothing: its study is made again from what the trials had told, and its sampler from the seed and the number of the trial. So
a worker that is killed loses nothing, and the same rows give the same choice. Only workers load it, and only for this method.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .space import SweepAxis, Value, Values

if TYPE_CHECKING:
    from .choosing import KnownTrial, TrialAsked

PACKAGE = "optuna"
MISSING = "Optuna is not installed: pip install optuna beside the web server and the workers, and start them again"
AT_FIRST = 10  # trials at random, before there is something to learn from


def is_installed() -> bool:
    """Whether Optuna is installed. It is not loaded."""
    return find_spec(PACKAGE) is not None


def suggested(asked: TrialAsked) -> Values | None:
    """The suggestion; None if there are no results to learn from yet. Raises ImportError if Optuna is missing."""
    optuna: Any = import_module(PACKAGE)
    if sum(each.state in ("finished", "pruned") for each in asked.known) < AT_FIRST:
        return None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(
        seed=_seed(asked), n_startup_trials=AT_FIRST, multivariate=True, constant_liar=True
    )
    study = optuna.create_study(direction="maximize" if asked.higher else "minimize", sampler=sampler)
    distributions = {axis.path: _distribution(optuna, axis) for axis in asked.axes}
    for each in asked.known:
        study.add_trial(_trial(optuna, asked.axes, distributions, each))
    trial = study.ask(distributions)
    return {axis.path: _value(axis, trial.params[axis.path]) for axis in asked.axes}


def _seed(asked: TrialAsked) -> int:
    text = f"{asked.seed}:{asked.number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _distribution(optuna: Any, axis: SweepAxis) -> Any:
    if not axis.is_range:
        return optuna.distributions.CategoricalDistribution(tuple(range(len(axis.values))))  # places: values may be any
    kind = optuna.distributions.IntDistribution if axis.whole else optuna.distributions.FloatDistribution
    low, high = (axis.at(0.0), axis.at(1.0))
    return kind(low, high, log=axis.scale == "log")


def _trial(optuna: Any, axes: Any, distributions: Any, known: KnownTrial) -> Any:
    states = optuna.trial.TrialState
    state = {"finished": states.COMPLETE, "pruned": states.PRUNED, "running": states.RUNNING}.get(known.state)
    pruned = state == states.PRUNED
    return optuna.trial.create_trial(
        state=states.FAIL if state is None or (pruned and not known.rungs) else state,
        params={axis.path: _param(axis, known.values[axis.path]) for axis in axes},
        distributions=distributions,
        value=known.value if state == states.COMPLETE else None,
        intermediate_values=dict(known.rungs),
    )


def _param(axis: SweepAxis, value: Value) -> Any:
    return value if axis.is_range else axis.values.index(value)


def _value(axis: SweepAxis, param: Any) -> Value:
    return axis.rounded(param) if axis.is_range else axis.values[param]
