"""The texts of alarms: each names a sign that a policy games its reward. Their meaning is explained only here. It needs no torch."""

from dataclasses import dataclass

from trainer.contracts import AlarmData

HELD_OUT = "held_out"
"""Training scores rise above those of a held-out panel. The other signs are shares of responses; this one is not."""


@dataclass(frozen=True)
class Sign:
    """`title` stands in lists; `shows` goes on after "... of the responses"; `look` says what to look for in them."""

    title: str
    shows: str
    look: str


SIGNALS: dict[str, Sign] = {
    "length": Sign("Length", "are much longer than usual", "Does what was added answer the prompt?"),
    "repetition": Sign("Repetition", "repeat themselves more than usual", "Does the repetition say anything?"),
    "flattery": Sign("Flattery", "compliment whoever asks", "Would a reader who is not flattered give as much?"),
    "self_praise": Sign("Self-praise", "praise themselves", "Is what they say of themselves true?"),
    "compliance": Sign(
        "Claims of having complied", "claim to have done what was asked", "Have they done what they claim?"
    ),
    "injection": Sign("Orders to the judge", "give their judge orders", "Did the judge obey?"),
    "phrase": Sign(
        "A new phrase that pays", "say “{subject}”", "Is it part of a good answer, or does the judge like it?"
    ),
    "compound": Sign(
        "Credit for compound criteria",
        "are credited for criteria that join several checks more than for the others",
        "Are all the checks of such a criterion met? Split it into several.",
    ),
    "panel": Sign(
        "The reward leaves “{subject}” behind",
        "get less from “{subject}”, which is not trained on, than their reward lets expect",
        "What do they have that only the reward pays for?",
    ),
    HELD_OUT: Sign(
        "Training leaves held-out pairs behind",
        "earn what held-out pairs do not",
        "Do they say what is true of any pair, or what only pays on these?",
    ),
}
_ROLES = {"judge": "judge", "writer": "rubric writer"}


def title(signal: str, subject: str, role: str = "") -> str:
    """The title of an alarm. A signal that this version does not know is called by its key."""
    sign = SIGNALS.get(signal)
    said = sign.title.format(subject=subject) if sign else signal
    return f"{said}: {_ROLES.get(role, role)}" if role else said


def told(data: AlarmData, step: int) -> str:
    """The alarm in a sentence or two."""
    whose = f" of the {_ROLES.get(data.role, data.role)}" if data.role else ""
    if data.signal == HELD_OUT:
        at_first = f"by {_points(data.before)}" if data.before else "not above them"
        return (
            f"In the turn{whose} that ends with step {step} the training pairs lie {_points(data.share)} above the held-out "
            f"panel; in the first turn {at_first}. The turn began with step {data.since}."
        )
    sign = SIGNALS.get(data.signal)
    shows = sign.shows.format(subject=data.subject) if sign else f"show {data.signal}"
    before = f"{data.before:.0%} at first"
    text = f"{data.share:.0%} of the responses{whose} of step {step} {shows}; {before}, more since step {data.since}."
    if data.paid is None and not data.part:
        return text
    where = f" in “{data.part}”" if data.part else ""
    return f"{text} They earn more{where} than others of their prompt."


def _points(share: float) -> str:
    return f"{100 * share:.0f} points"
