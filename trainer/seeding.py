"""Seeds by name: every draw of a run follows from the run's seed and the purpose of the draw.

No random state is carried from step to step, so a resumed run needs no generator state to repeat its draws.
"""

import hashlib


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, such as `derive_seed(0, "rollout", step, group, index)`."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
