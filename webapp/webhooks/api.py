"""Webhooks over the API: for owners, like the page."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn
from webapp.core.requests.strict_query import OneOf

from . import access, queries, services
from .models import Delivery, Webhook

router = Router(tags=["webhooks"])


class WebhookIn(StrictIn):
    url: str
    events: list[str]


class WebhookChange(StrictIn):
    url: str | None = None
    events: list[str] | None = None
    active: bool | None = None


class WebhookOut(Schema):
    id: int
    url: str
    events: list[str]
    active: bool
    created_at: datetime


class WebhookCreated(WebhookOut):
    secret: str


class WebhookList(Schema):
    items: list[WebhookOut]
    next: str | None


class SecretOut(Schema):
    secret: str


class DeliveryOut(Schema):
    """`status`, `duration_ms`, `answer` (its beginning) and `error` are of the last attempt."""

    id: int
    event_id: UUID
    event: str
    state: str
    attempts: int
    created_at: datetime
    tried_at: datetime | None
    next_try_at: datetime | None
    status: int | None
    duration_ms: int | None
    answer: str
    error: str
    message: dict[str, object]

    @staticmethod
    def resolve_next_try_at(row: Delivery) -> datetime | None:
        return row.next_try_at if row.state == Delivery.State.WAITING else None

    @staticmethod
    def resolve_message(row: Delivery) -> dict[str, object]:
        return queries.message(row)


class SentAgain(Schema):
    messages: int = Field(description="How many are sent in the next seconds")


class DeliveryList(Schema):
    items: list[DeliveryOut]
    next: str | None


@router.get("/webhooks", response=WebhookList, summary="The workspace's webhooks")
def webhooks(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.hooks(require(request, access.OWNER).workspace_id), cursor, limit, "-id")


@router.post("/webhooks", response={201: WebhookCreated}, summary="Create a webhook; its secret is shown only now")
def create(request: HttpRequest, payload: WebhookIn) -> Status[object]:
    hook, secret = services.create(require(request, access.OWNER), payload.url, payload.events)
    return Status(201, {**WebhookOut.model_validate(hook, from_attributes=True).model_dump(), "secret": secret})


@router.get("/webhooks/{int:hook_id}", response=WebhookOut, summary="One webhook")
def webhook(request: HttpRequest, hook_id: int) -> Webhook:
    return access.hook_write(require(request), hook_id)


@router.patch("/webhooks/{int:hook_id}", response=WebhookOut, summary="Change, pause or resume a webhook")
@transaction.atomic  # two services: all of what is asked for, or nothing
def change(request: HttpRequest, hook_id: int, payload: WebhookChange) -> Webhook:
    membership = require(request)
    hook = access.hook_write(membership, hook_id)
    if payload.url is not None or payload.events is not None:
        services.change(membership, hook, url=payload.url, events=payload.events)
    if payload.active is not None:
        services.set_active(membership, hook, payload.active)
    return hook


@router.delete("/webhooks/{int:hook_id}", response={204: None}, summary="Delete a webhook with its log")
def delete(request: HttpRequest, hook_id: int) -> Status[None]:
    membership = require(request)
    services.delete(membership, access.hook_write(membership, hook_id))
    return Status(204, None)


@router.post(
    "/webhooks/{int:hook_id}/secret", response=SecretOut, summary="Replace the secret; the old one stops at once"
)
def renew_secret(request: HttpRequest, hook_id: int) -> dict[str, str]:
    membership = require(request)
    return {"secret": services.renew_secret(membership, access.hook_write(membership, hook_id))}


@router.post("/webhooks/{int:hook_id}/test", response={202: DeliveryOut}, summary="Send the event webhook.test, once")
def test(request: HttpRequest, hook_id: int) -> Status[Delivery]:
    membership = require(request)
    return Status(202, services.test(membership, access.hook_write(membership, hook_id)))


@router.get("/webhooks/{int:hook_id}/deliveries", response=DeliveryList, summary="Deliveries, newest first")
def deliveries(
    request: HttpRequest,
    hook_id: int,
    state: Annotated[str, OneOf(tuple(Delivery.State.values))] | None = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> object:
    hook = access.hook_write(require(request), hook_id)
    return page(queries.deliveries(hook, state), cursor, limit, "-id")


@router.post(
    "/webhooks/{int:hook_id}/deliveries/again", response={202: SentAgain}, summary="Send all failed messages again"
)
def failed_again(request: HttpRequest, hook_id: int) -> Status[dict[str, int]]:
    """Each with its same id. What has failed for good is tried for as long as if it had just happened; what waits for its next attempt is
    sent now. Tests are left out. Twice does no harm. 409 while the webhook is paused."""
    membership = require(request)
    hook = access.hook_write(membership, hook_id)
    return Status(202, {"messages": services.deliver_failed_again(membership, hook)})


@router.post(
    "/webhooks/{int:hook_id}/deliveries/{int:delivery_id}/again",
    response={202: DeliveryOut},
    summary="Send a delivery again, with the same id",
)
def again(request: HttpRequest, hook_id: int, delivery_id: int) -> Status[Delivery]:
    membership = require(request)
    return Status(202, services.deliver_again(membership, access.delivery_write(membership, hook_id, delivery_id)))
