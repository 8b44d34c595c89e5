"""Encrypted streams: decryption gives the same data, and refuses changed data."""

from io import BytesIO

import pytest

from webapp.backups import crypto
from webapp.backups.crypto import CHUNK, MAGIC, SALT, TAG, BackupKey, Sealing, unseal
from webapp.backups.problems import Damaged, WrongKey

KEY = BackupKey(b"k" * 32)


def sealed(data: bytes, step: int = 300_000) -> bytes:
    file = BytesIO()
    sink = Sealing(file, KEY)
    for start in range(0, len(data), step):
        sink.write(data[start : start + step])
    sink.close()
    return file.getvalue()


def opened(data: bytes, key: BackupKey = KEY) -> bytes:
    return b"".join(unseal(BytesIO(data), key))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_what_is_sealed_is_read_again(size):
    data = bytes(range(256)) * (size // 256 + 1)
    assert opened(sealed(data[:size])) == data[:size]


def test_the_same_content_is_never_sealed_alike():
    assert sealed(b"content") != sealed(b"content")


HEAD, WHOLE = len(MAGIC) + SALT, CHUNK + TAG


@pytest.mark.parametrize(
    "touch",
    [
        lambda data: data[:HEAD] + bytes([data[HEAD] ^ 1]) + data[HEAD + 1 :],
        lambda data: data[:-1],
        lambda data: data[: HEAD + WHOLE],  # cut off where a chunk ends
        lambda data: data[:HEAD] + data[HEAD + WHOLE :],  # the first chunk is gone
        lambda data: (
            data[:HEAD] + data[HEAD + WHOLE : HEAD + 2 * WHOLE] + data[HEAD : HEAD + WHOLE] + data[HEAD + 2 * WHOLE :]
        ),
        lambda data: data + b"more",
        lambda data: data[: HEAD - 1],
        lambda data: b"",
        lambda data: sealed(b"other")[:HEAD] + data[HEAD:],  # the head of another file
    ],
)
def test_nothing_can_be_changed_cut_off_moved_or_added(touch):
    data = sealed(bytes(2 * CHUNK + 100))
    with pytest.raises(Damaged):
        opened(touch(data))


def test_a_wrong_passphrase_is_told_in_a_sentence():
    key, kept = crypto.new(b"a long enough passphrase")
    assert crypto.unlock_key(b"a long enough passphrase", kept) == key
    with pytest.raises(WrongKey, match="The passphrase is not the one that these backups were encrypted with."):
        crypto.unlock_key(b"another passphrase", kept)
