"""Secrets and signatures after https://www.standardwebhooks.com: libraries in many languages verify them."""

import hmac
import secrets
from base64 import b64decode, b64encode

PREFIX = "whsec_"


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()


def headers(secret: str, message_id: str, sent_at: int, body: bytes) -> dict[str, str]:
    """Id, time and signature of one attempt. `sent_at` in Unix seconds; the id stays the same when it is sent again."""
    signed = b".".join([message_id.encode(), str(sent_at).encode(), body])
    digest = hmac.digest(b64decode(secret.removeprefix(PREFIX)), signed, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }
