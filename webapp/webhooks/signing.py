"""Secrets after https://www.standardwebhooks.com: libraries in many languages verify what they sign."""

import secrets
from base64 import b64encode

from trainer.rewards.signing import SECRET_PREFIX as PREFIX
from trainer.rewards.signing import signature as headers

__all__ = ["PREFIX", "headers", "new_secret"]


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()
