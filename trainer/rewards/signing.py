"""Signatures that prove to a user's service that this installation asks: by https://www.standardwebhooks.com, as for webhooks."""

import hmac
from base64 import b64decode, b64encode

SECRET_PREFIX = "whsec_"  # noqa: S105 - how such secrets begin


def signature(secret: str, message_id: str, sent_at: int, body: bytes) -> dict[str, str]:
    """The headers with id, time and signature of one attempt. `sent_at` is in Unix seconds. The id stays the same if it is sent again."""
    signed = b".".join([message_id.encode(), str(sent_at).encode(), body])
    digest = hmac.digest(b64decode(secret.removeprefix(SECRET_PREFIX)), signed, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }
