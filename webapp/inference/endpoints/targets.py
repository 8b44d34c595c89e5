"""The data that a client needs to ask an endpoint. The key is here in the clear: for workers only, and never to be stored or logged."""

from django.conf import settings

from trainer.judges.chat import EndpointProblem, Prices, Target
from trainer.judges.local import LocalTarget
from webapp.core.background.children import environment
from webapp.core.encryption import Unreadable, unseal
from webapp.core.problems import Conflict

from .. import queries
from ..folders.tokenizers import unloadable
from ..models import Endpoint
from . import addresses

Kind = Endpoint.Kind


def endpoint_target(endpoint: Endpoint) -> Target:
    """A chat API, for the client.

    Raises Conflict for an endpoint that is archived or is not a chat API, EndpointProblem "refused" if its key can no longer be read.
    """
    _in_use(endpoint)
    if endpoint.kind != Kind.CHAT:
        raise Conflict(f"The endpoint {endpoint.name} is not a chat API, but of kind {endpoint.kind}.", "not_chat")
    return _target(endpoint)


def reward_target(endpoint: Endpoint) -> Target:
    """A reward service: the address to which responses are posted, and the secret that signs, as `key`. Raises as `endpoint_target`
    does."""
    _in_use(endpoint)
    if endpoint.kind != Kind.REWARD:
        raise Conflict(
            f"The endpoint {endpoint.name} is not a reward service, but of kind {endpoint.kind}.", "not_reward"
        )
    return _target(endpoint)


def _target(endpoint: Endpoint) -> Target:
    try:
        key = unseal(endpoint.secret) if endpoint.secret else None
    except Unreadable as error:
        reason = f"the key of {endpoint.name} cannot be read: {error}. Enter it again on the endpoint's page"
        raise EndpointProblem("refused", reason) from error
    return Target(
        url=endpoint.url,
        model=endpoint.model,
        key=key,
        concurrency=endpoint.concurrency,
        requests_per_minute=endpoint.requests_per_minute,
        timeout_s=endpoint.timeout_s,
        retries=endpoint.retries,
        supports_schema=endpoint.capabilities.get("schema") is True,
        prices=prices(endpoint),
        tokens_field=endpoint.capabilities.get("tokens_field", "max_tokens"),
        refuse=addresses.refuse(endpoint.url),
    )


def local_target(endpoint: Endpoint, *, yes_no: bool, wording: str) -> LocalTarget:
    """A local model, for a process that the worker starts. LocalTarget explains the arguments.

    Raises Conflict for an endpoint that is archived or of another kind, EndpointProblem if the model cannot be loaded.
    """
    _in_use(endpoint)
    model = endpoint.registered_model
    if endpoint.kind != Kind.LOCAL or model is None:
        raise Conflict(f"The endpoint {endpoint.name} has no weights here: it is of kind {endpoint.kind}.", "not_local")
    if why := unloadable(model):
        raise EndpointProblem("down", why)
    loaded = queries.source(model)
    return LocalTarget(
        settings.JUDGE_COMMAND,
        str(settings.BASE_DIR),
        loaded.path,
        yes_no,
        wording=wording,
        prices=prices(endpoint),
        adapters=loaded.adapters,
        environment=environment(),
    )


def _in_use(endpoint: Endpoint) -> None:
    if endpoint.archived_at is not None:
        raise Conflict(f"The endpoint {endpoint.name} is archived. Restore it on its page.", "archived")


def prices(endpoint: Endpoint) -> Prices | None:
    """Both prices; None if one is not known."""
    if endpoint.price_prompt is None or endpoint.price_completion is None:
        return None
    return Prices(endpoint.price_prompt, endpoint.price_completion)
