"""A grant lets a run reach the judges that its config names.

It asks this server, which makes the calls: keys of endpoints stay here. Only a judge with local weights answers in the run's
own process, beside its weights.
"""

from typing import Any

from trainer.contracts import JudgeGrant
from trainer.judges.chat import EndpointProblem
from trainer.judges.local import LocalTarget
from webapp.core.problems import Conflict, Problem
from webapp.judging.asking.calls import target_of
from webapp.judging.judges.services import begin_use
from webapp.judging.models import JudgeVersion

from ..models import Run

NO_RECORDED = "uses recorded outputs, which cannot answer new questions; a reward needs a judge that can answer them"


def judges(run: Run) -> dict[str, JudgeGrant]:
    """The grants by the judges' names in the config; {} if the run is over. Raises Problem if an endpoint can no longer be used."""
    return {} if run.is_over else {name: grant(version) for name, version in versions(run).items()}


def versions(run: Run) -> dict[str, JudgeVersion]:
    """The judges by the names in the config."""
    slots = run.slots.filter(judge__isnull=False).select_related("judge__judge", "judge__endpoint__registered_model")
    return {value_at(run.config, slot.path): slot.judge for slot in slots if slot.judge is not None}


def grant(version: JudgeVersion) -> JudgeGrant:
    """The grant of a version, whose endpoint must not change from now on. Raises Problem."""
    try:
        target = target_of(version.endpoint, version.resolved)
    except (Conflict, EndpointProblem) as error:
        raise Problem(str(error), code="judge", status=409) from error
    if target is None:
        raise Problem(f"{version} {NO_RECORDED}.", code="judge", status=409)
    begin_use(version)
    if not isinstance(target, LocalTarget):
        return JudgeGrant(spec=version.spec, key=version.digest)
    prices = (str(target.prices.prompt), str(target.prices.completion)) if target.prices else None
    adapters = tuple(target.adapters)
    return JudgeGrant(spec=version.spec, key=version.digest, local=target.model, adapters=adapters, prices=prices)


def value_at(config: Any, path: str) -> Any:
    """The value at a dotted path of a config."""
    for part in path.split("."):
        config = config[int(part)] if isinstance(config, list) else config[part]
    return config
