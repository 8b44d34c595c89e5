"""Recovery codes: ten for a person, shown once when they are made, and stored as hashes.

A code has 120 random bits, so its SHA-256 tells nothing of it. Older codes have eight digits and were drawn from a sealed seed: they
continue working, by that seed until `hash_former` has processed them, and by their Argon2id hashes from then on.
"""

import re
import secrets
from base64 import b32encode
from textwrap import wrap

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal import auth, flows
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes as Former
from django.contrib.auth.hashers import check_password, make_password
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.crypto import constant_time_compare

from webapp.accounts.models import User, hash_secret
from webapp.core.encryption import Unreadable, seal, unseal

COUNT = 10
BYTES = 15
TOLD_S = 600  # how long codes wait for the page that tells them
AT_ONCE = 5  # people whose former codes one round hashes: a tenth of a second of a processor for each code
KIND = Authenticator.Type.RECOVERY_CODES


class Codes(Former):  # type: ignore[misc]  # allauth has no types
    """The class that allauth needs for recovery codes. It has no setting for this class: `install` replaces its own."""

    instance: Authenticator

    @classmethod
    def activate(cls, user: User) -> "Codes":
        """The person's codes; made, and kept for `take` in sealed form, if there are none."""
        if found := Authenticator.objects.filter(user_id=user.pk, type=KIND).first():
            return cls(found)
        made = ["-".join(wrap(b32encode(secrets.token_bytes(BYTES)).decode().lower(), 4)) for _ in range(COUNT)]
        data = {"hashes": [hash_secret(_plain(code)) for code in made]}
        row = Authenticator.objects.create(user=user, type=KIND, data=data)
        cache.set(_place(row), seal("\n".join(made)), TOLD_S)
        return cls(row)

    def get_unused_codes(self) -> list[str]:
        """As many empty texts as there are codes left, because allauth counts them: the codes themselves cannot be read any more."""
        return [""] * self.left

    @property
    def left(self) -> int:
        hashes = self.instance.data.get("hashes")
        return len(hashes) if hashes is not None else COUNT - int(self.instance.data["used_mask"]).bit_count()

    @transaction.atomic
    def validate_code(self, code: str) -> bool:
        """Whether the code is one of those left; it is used up then."""
        row = Authenticator.objects.select_for_update().filter(pk=self.instance.pk).first()
        if row is None:
            return False
        self.instance = row
        if "hashes" not in row.data:
            return bool(super().validate_code(code))
        found = next((each for each in row.data["hashes"] if _is(_plain(code), each)), None)
        if found is not None:
            row.data["hashes"].remove(found)
            row.save(update_fields=["data"])
        return found is not None


def install() -> None:
    auth.RecoveryCodes = flows.RecoveryCodes = Codes


def take(row: Authenticator) -> list[str]:
    """The codes that were just made, once and for ten minutes; empty afterwards."""
    sealed = cache.get(_place(row))
    if not sealed or not cache.delete(_place(row)):  # of two pages at once one shows them
        return []
    try:
        return unseal(sealed).split("\n")
    except Unreadable:
        return []


def hash_former(most: int = AT_ONCE) -> int:
    """Replaces seeds from before by hashes of the codes that are left; of how many people.

    A row is replaced only as it was read: a person who uses a code meanwhile is processed again in the next round.
    """
    done = 0
    for row in Authenticator.objects.filter(type=KIND, data__has_key="seed").order_by("pk").iterator():
        try:
            codes = Former(row).get_unused_codes()
        except ValidationError:  # no key opens the seed; the codes are refused until one does
            continue
        hashes = [make_password(code) for code in codes]
        done += Authenticator.objects.filter(pk=row.pk, data=row.data).update(data={"hashes": hashes})
        if done >= most:
            break
    return done


def _is(plain: str, stored: str) -> bool:
    if "$" not in stored:
        return constant_time_compare(hash_secret(plain), stored)
    return len(plain) == 8 and check_password(plain, stored)  # eight digits, from before


def _plain(code: str) -> str:
    """The code as it was made, however it was typed: digits that its alphabet lacks are read as the letters they look like."""
    plain = re.sub(r"[^a-z0-9]", "", code.lower())
    return plain if plain.isdecimal() else plain.translate(str.maketrans("018", "olb"))


def _place(row: Authenticator) -> str:
    return f"recovery-codes:{row.pk}"
