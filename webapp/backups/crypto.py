"""Encrypts files in chunks: read and written as streams. No chunk can be changed, moved, dropped or added without detection.

The construction is STREAM of Hoang, Reyhanitabar, Rogaway and Vizár (CRYPTO 2015, "Online Authenticated-Encryption and its Nonce-Reuse
Misuse-Resistance"): AES-256-GCM over chunks of 1 MiB. The nonce is the chunk's number and whether it is the last one. Each file has its own
key, HKDF-SHA256 of the folder's key and 16 random bytes, so that no nonce is used twice. The folder's key is scrypt of the passphrase.
"""

import hmac
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .places import ContentReader
from .problems import Damaged, WrongKey

CHUNK = 1 << 20
TAG = 16
SALT = 16
MAGIC = b"TSBK1\n"
COST = {"n": 2**15, "r": 8, "p": 1}  # 32 MB and about a tenth of a second a guess


@dataclass(frozen=True)
class BackupKey:
    """The key of a folder of backups. It never leaves the process."""

    secret: bytes

    def name(self, digest: str) -> str:
        """The name of a content. Without the key, nobody can check whether a file that they know is among the backups."""
        return hmac.new(self._derive(b"names"), digest.encode(), sha256).hexdigest()

    def cipher(self, salt: bytes) -> AESGCM:
        return AESGCM(self._derive(b"file" + salt))

    def check(self) -> str:
        """A text that tells whether a passphrase is right, and reveals nothing else about it."""
        return self._derive(b"check").hex()

    def _derive(self, purpose: bytes) -> bytes:
        return HKDF(SHA256(), 32, salt=None, info=b"touchstone backup " + purpose).derive(self.secret)


def new(passphrase: bytes) -> tuple[BackupKey, str]:
    """A new key, and the data that are kept beside the backups to make the key again from the passphrase."""
    salt = os.urandom(SALT)
    key = _stretched(passphrase, salt)
    return key, json.dumps({"scrypt": COST, "salt": b64encode(salt).decode(), "check": key.check()})


def unlock_key(passphrase: bytes, kept: str) -> BackupKey:
    """Raises WrongKey."""
    told = json.loads(kept)
    key = _stretched(passphrase, b64decode(told["salt"]), **told["scrypt"])
    if not hmac.compare_digest(key.check(), told["check"]):
        raise WrongKey("The passphrase is not the one that these backups were encrypted with.")
    return key


def _stretched(passphrase: bytes, salt: bytes, n: int = COST["n"], r: int = COST["r"], p: int = COST["p"]) -> BackupKey:
    return BackupKey(Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(passphrase))


class Sealing:
    """Writes its input to `file`, encrypted. `close` writes the last chunk; it does not close the file."""

    def __init__(self, file: BinaryIO, key: BackupKey) -> None:
        salt = os.urandom(SALT)
        self._file, self._cipher = file, key.cipher(salt)
        self._waiting, self._number = bytearray(), 0
        file.write(MAGIC + salt)

    def write(self, data: bytes) -> None:
        self._waiting += data
        while len(self._waiting) > CHUNK:  # the last chunk is known only at the end, so one always waits
            self._chunk(bytes(self._waiting[:CHUNK]), last=False)
            del self._waiting[:CHUNK]

    def close(self) -> None:
        self._chunk(bytes(self._waiting), last=True)

    def _chunk(self, data: bytes, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), data, None))
        self._number += 1


def unseal(file: ContentReader, key: BackupKey) -> Iterator[bytes]:
    """The decrypted content, chunk by chunk. Raises Damaged at the first chunk that was changed or is missing."""
    head = file.read(len(MAGIC) + SALT)
    if len(head) < len(MAGIC) + SALT or not head.startswith(MAGIC):
        raise Damaged("A file of the backup is not what was written: its beginning is wrong.")
    cipher, number = key.cipher(head[len(MAGIC) :]), 0
    chunk = file.read(CHUNK + TAG)
    while True:
        following = file.read(CHUNK + TAG)
        try:
            yield cipher.decrypt(_nonce(number, last=not following), chunk, None)
        except InvalidTag:
            raise Damaged("A file of the backup is not what was written: it was changed or cut off.") from None
        if not following:
            return
        chunk, number = following, number + 1


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
