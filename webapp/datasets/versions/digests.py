"""The digest of a version by its examples, and the side of the split of an example by its key."""

from collections.abc import Iterable
from hashlib import sha256

from trainer.contracts.example import Split

SPLIT_SALT = "touchstone-split:"


def version_digest(example_digests: Iterable[str]) -> str:
    """SHA-256 over the sorted example digests, each followed by a newline. The order of a file does not matter."""
    found = sha256()
    for digest in sorted(example_digests):
        found.update(digest.encode() + b"\n")
    return found.hexdigest()


def side(key: str, heldout_share: float) -> Split:
    """`train` or `heldout`, by a hash of the key alone.

    A key is on the same side in every file, version and dataset with the same share, for any number of other rows. With a larger share,
    held-out examples stay held out.
    """
    draw = int.from_bytes(sha256((SPLIT_SALT + key).encode()).digest()[:8], "big") / 2**64
    return "heldout" if draw < heldout_share else "train"
