"""Secrets that must be read again, such as signing keys: encrypted at rest under a key made from SECRET_KEY.

SECRET_KEY_FALLBACKS still open what was sealed before the key was changed; `manage.py reencrypt` seals it again.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.apps import apps
from django.conf import settings
from django.db import models


class Unreadable(Exception):
    """The secret was sealed under another SECRET_KEY, or its row was tampered with."""


class EncryptedField(models.TextField):  # type: ignore[type-arg]  # Django's own class takes none
    """A field that holds the result of `seal`, or nothing. It is a text for the database; `reencrypt` finds all of them by the class."""

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs


_INSIDE: dict[str, tuple[str, tuple[str, ...]]] = {}


def sealed_inside(model: str, column: str, *keys: str) -> None:
    """Says that the JSON `column` of a model that is not ours holds what `seal` returns, under `keys`: `reencrypt` finds it."""
    _INSIDE[model] = (column, keys)


@dataclass
class Sealed:
    """The numbers of secrets of one column that are under the present key, were under a former one, or open under none."""

    column: str
    current: int = 0
    former: int = 0
    unreadable: int = 0


def seal(secret: str) -> str:
    """`secret` encrypted and authenticated; safe to store."""
    return _box(settings.SECRET_KEY).encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """The secret that `seal` was given. Raises Unreadable if the key has changed since."""
    try:
        return MultiFernet([_box(key) for key in _keys()]).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("it was stored under another SECRET_KEY") from error


def is_current(sealed: str) -> bool:
    """Whether the present key opens it."""
    try:
        _box(settings.SECRET_KEY).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def encrypt_again(change: bool = True) -> Iterator[Sealed]:
    """Seals under the present key what former ones open, column by column; with `change` False it only counts.

    It may be broken off and begun again, and run while people work: a row is replaced only as it was read, so that a secret
    that somebody stores at this moment stays. Such a row is looked at again.
    """
    for model in apps.get_models():
        for field in model._meta.fields:
            if isinstance(field, EncryptedField):
                yield _resealed(model._base_manager.exclude(**{field.name: ""}), field.name, (), change)
    for label, (column, keys) in _INSIDE.items():
        yield _resealed(apps.get_model(label)._base_manager.all(), column, keys, change)


def _resealed(rows: models.QuerySet[Any], name: str, keys: tuple[str, ...], change: bool) -> Sealed:
    """Seals one column again, or the `keys` in the JSON that it holds."""
    found = Sealed(f"{rows.model._meta.label_lower}.{name}")
    for pk in list(rows.order_by("pk").values_list("pk", flat=True)):
        while (held := rows.filter(pk=pk).values_list(name, flat=True).first()) is not None:
            parts = {key: held[key] for key in keys if key in held} if keys else {"": held}
            if all(is_current(part) for part in parts.values()):
                found.current += len(parts)
                break
            try:
                opened = {key: seal(unseal(part)) for key, part in parts.items()}
            except Unreadable:
                found.unreadable += len(parts)
                break
            anew = {**held, **opened} if keys else opened[""]
            # replaced only as it was read: a secret that was stored meanwhile is sealed already
            if not change or rows.filter(pk=pk, **{name: held}).update(**{name: anew}):
                found.former += len(parts)
                break
    return found


def _keys() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _box(secret: str) -> Fernet:
    # a separate key: a person who learns the one that signs sessions cannot compute this one
    key = HKDF(SHA256(), 32, salt=None, info=b"touchstone sealed secrets").derive(secret.encode())
    return Fernet(urlsafe_b64encode(key))
