"""Tokens that are derived from the key of the server instead of stored."""

from django.conf import settings
from django.utils.crypto import salted_hmac

from ..models import hash_secret


def derived(prefix: str, salt: str, text: str, digest: str) -> str:
    """The token of `text`. If `digest`, of the token that was handed out before, belongs to a former key, returns the token of that key."""
    made = [
        prefix + salted_hmac(salt, text, secret=key, algorithm="sha256").hexdigest()
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]
    return next((token for token in made if hash_secret(token) == digest), made[0])
