"""The reward of a rubric writer (MaMs, 2026): its rubric must rank answers as people do, be good, and be readable."""


def mams_reward(
    score_chosen: float | None,
    score_rejected: float | None,
    quality: float | None,
    format_ok: bool,
    l_pref: float = 1.0,
    l_llm: float = 1.0,
) -> float | None:
    """`l_pref R_pref + l_llm R_llm + R_fmt` of one written rubric.

    `R_pref` is 1 if the rubric scores the chosen response above the rejected one, else -1: a tie is -1. `R_llm` is `quality`, a judge's
    points for the rubric, 0 to 4. `R_fmt` is -1 for a wrong format, else 0. A rubric that cannot be
    read (wrong format, no score of either response) has R_pref -1 and R_llm 0. The reward is None if a judge left out a
    number that the sum needs: the rubric is then excluded, not punished. A term of weight 0 needs no number.
    """
    if not format_ok and score_chosen is None and score_rejected is None:
        return -l_pref - 1.0
    total = 0.0 if format_ok else -1.0
    if l_pref:
        if score_chosen is None or score_rejected is None:
            return None
        total += l_pref * preference_reward(score_chosen, score_rejected)
    if l_llm:
        if quality is None:
            return None
        total += l_llm * quality
    return total


def preference_reward(score_chosen: float, score_rejected: float) -> float:
    """`R_pref`: 1 if the chosen response has the higher score, else -1."""
    return 1.0 if score_chosen > score_rejected else -1.0
