"""The group `webhooks` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group


class DeliveryOut(TypedDict):
    """`status`, `duration_ms`, `answer` (its beginning) and `error` are of the last attempt."""

    id: int
    event_id: str
    event: str
    state: str
    attempts: int
    created_at: str
    tried_at: str | None
    next_try_at: str | None
    status: int | None
    duration_ms: int | None
    answer: str
    error: str
    message: dict[str, Any]


class SecretOut(TypedDict):
    secret: str


class SentAgain(TypedDict):
    messages: int


class WebhookChange(TypedDict):
    url: NotRequired[str | None]
    events: NotRequired[list[str] | None]
    active: NotRequired[bool | None]


class WebhookCreated(TypedDict):
    id: int
    url: str
    events: list[str]
    active: bool
    created_at: str
    secret: str


class WebhookIn(TypedDict):
    url: str
    events: list[str]


class WebhookOut(TypedDict):
    id: int
    url: str
    events: list[str]
    active: bool
    created_at: str


class Webhooks(Group):
    def all(self, *, page_size: int | None = None) -> Iterator[WebhookOut]:
        """The workspace's webhooks."""
        return self._pages(WebhookOut, "/webhooks", query={"limit": page_size})

    def create(self, body: WebhookIn) -> WebhookCreated:
        """Create a webhook; its secret is shown only now."""
        return self._json(WebhookCreated, "POST", "/webhooks", body=body)

    def get(self, hook_id: int) -> WebhookOut:
        """One webhook."""
        return self._json(WebhookOut, "GET", f"/webhooks/{hook_id}")

    def change(self, hook_id: int, body: WebhookChange) -> WebhookOut:
        """Change, pause or resume a webhook."""
        return self._json(WebhookOut, "PATCH", f"/webhooks/{hook_id}", body=body)

    def delete(self, hook_id: int) -> None:
        """Delete a webhook with its log."""
        self._nothing("DELETE", f"/webhooks/{hook_id}")

    def renew_secret(self, hook_id: int) -> SecretOut:
        """Replace the secret; the old one stops at once."""
        return self._json(SecretOut, "POST", f"/webhooks/{hook_id}/secret")

    def test(self, hook_id: int) -> DeliveryOut:
        """Send the event webhook.test, once."""
        return self._json(DeliveryOut, "POST", f"/webhooks/{hook_id}/test")

    def deliveries(
        self,
        hook_id: int,
        *,
        state: Literal["waiting", "sending", "delivered", "failed"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[DeliveryOut]:
        """Deliveries, newest first."""
        return self._pages(DeliveryOut, f"/webhooks/{hook_id}/deliveries", query={"state": state, "limit": page_size})

    def failed_again(self, hook_id: int) -> SentAgain:
        """Send all failed messages again. Each with its same id. What has failed for good is tried for as long
        as if it had just happened; what waits for its next attempt is sent now. Tests are left out. Twice
        does no harm. 409 while the webhook is paused.
        """
        return self._json(SentAgain, "POST", f"/webhooks/{hook_id}/deliveries/again", again=True)

    def again(self, hook_id: int, delivery_id: int) -> DeliveryOut:
        """Send a delivery again, with the same id."""
        return self._json(DeliveryOut, "POST", f"/webhooks/{hook_id}/deliveries/{delivery_id}/again")
