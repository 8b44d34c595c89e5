"""AHRL, hints that fade (ERNIE 5.0, 2026): the prompt shows the first part of the reference reasoning."""

import math
from typing import Any

from trainer.config.sections.hint import Hint

from .rounding import half_up


def hint_share(p0: float, gamma: float, t: int, pass0: float) -> float:
    """The share of the reference reasoning that is shown at iteration t: `p0 exp(-gamma t pass0)`.

    `pass0` is the prompt's pass rate before the run. If it is 0, the hint never fades.
    """
    return p0 * math.exp(-(pass0 * gamma) * t) if pass0 else p0


def hint_for(config: Hint, reasoning: tuple[int, ...], pass0: float | None, step: int) -> tuple[int, ...]:
    """The first tokens of `reasoning` that step 1, 2, ... shows; the share is rounded, halves up. `pass0` is None if it is not known."""
    known = config.unknown if pass0 is None else pass0
    share = hint_share(config.p0, config.gamma, step - 1, known or 0.0)
    return reasoning[: half_up(share * len(reasoning))]


def hint_text(tokenizer: Any, shown: tuple[int, ...]) -> str:
    """The sentences of the prompt that show these tokens; empty without tokens. A letter at the end of which only some bytes are shown is
    left out.
    """
    beginning = str(tokenizer.decode(list(shown), skip_special_tokens=True)).rstrip("\ufffd").strip()
    if not beginning:
        return ""
    return f"A good answer begins like this:\n{beginning}\nGive the whole answer, and do not mention this beginning."
