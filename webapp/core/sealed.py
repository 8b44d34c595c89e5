"""Secrets that must be read again, such as those we sign with: encrypted at rest under a key made from SECRET_KEY."""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """The secret was sealed under another SECRET_KEY, or its row was tampered with."""


def seal(secret: str) -> str:
    """`secret` encrypted and authenticated; safe to store."""
    return _box().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """What `seal` was given. Raises Unreadable when the key is another one by now."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("it was stored under another SECRET_KEY") from error


def _box() -> Fernet:
    # a key of its own: whoever learns the one that signs sessions in some other way still cannot compute back
    key = HKDF(SHA256(), 32, salt=None, info=b"touchstone sealed secrets").derive(settings.SECRET_KEY.encode())
    return Fernet(urlsafe_b64encode(key))
