"""What proves to a service of a user's that we asked: signatures after https://www.standardwebhooks.com, as of webhooks."""

import hmac
from base64 import b64decode, b64encode

SECRET_PREFIX = "whsec_"  # noqa: S105 - how such secrets begin


def signature(secret: str, message_id: str, sent_at: int, body: bytes) -> dict[str, str]:
    """Headers with id, time and signature of one attempt. `sent_at` in Unix seconds; the id is the same when it is sent again."""
    signed = b".".join([message_id.encode(), str(sent_at).encode(), body])
    digest = hmac.digest(b64decode(secret.removeprefix(SECRET_PREFIX)), signed, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }
