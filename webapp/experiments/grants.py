"""How a run reaches the judges that its config names.

A run calls them itself, so it would have to hold an endpoint's key, and whoever holds the token of a live run could read it.
Until calls go through this server, judges whose endpoint has a key are refused, before the queue and here.
"""

from typing import Any

from trainer.contracts import JudgeGrant
from trainer.judges.chat import EndpointProblem
from trainer.judges.local import LocalTarget
from webapp.core.problems import Conflict, Problem
from webapp.judging.models import JudgeVersion
from webapp.judging.services import asked, begin_use

from .models import Run

NO_KEYS = (
    "asks an endpoint with a key, which a run is not given; use an endpoint without one, such as a server of your own, or local "
    "weights. The command line can (--judges)"
)
NO_RECORDED = "asks recorded outputs, which answer nothing new; a reward needs a judge that can be asked"


def judges(run: Run) -> dict[str, JudgeGrant]:
    """By the name in the config; {} once the run is over. Raises Problem where an endpoint cannot be used any more."""
    if run.is_over:
        return {}
    slots = run.slots.filter(judge__isnull=False).select_related("judge__endpoint__registered_model")
    return {_at(run.config, slot.path): grant(slot.judge) for slot in slots if slot.judge is not None}


def grant(version: JudgeVersion) -> JudgeGrant:
    """From here on version and endpoint stay what they are. Raises Problem."""
    if version.endpoint.secret:
        raise Problem(f"{version} {NO_KEYS}.", code="judge", status=409)
    try:
        target = asked(version.endpoint, version.resolved)
    except (Conflict, EndpointProblem) as error:
        raise Problem(str(error), code="judge", status=409) from error
    if target is None:
        raise Problem(f"{version} {NO_RECORDED}.", code="judge", status=409)
    begin_use(version)
    prices = (str(target.prices.prompt), str(target.prices.completion)) if target.prices else None
    if isinstance(target, LocalTarget):
        return JudgeGrant(spec=version.spec, key=version.digest, local=target.model, prices=prices)
    return JudgeGrant(
        spec=version.spec,
        key=version.digest,
        url=target.url,
        model=target.model,
        concurrency=target.concurrency,
        requests_per_minute=target.requests_per_minute,
        timeout_s=target.timeout_s,
        retries=target.retries,
        supports_schema=target.supports_schema,
        tokens_field=target.tokens_field,
        prices=prices,
    )


def _at(config: Any, path: str) -> str:
    """What stands at a dotted path of a config."""
    for part in path.split("."):
        config = config[int(part)] if isinstance(config, list) else config[part]
    return str(config)
