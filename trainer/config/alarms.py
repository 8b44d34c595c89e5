"""The words for signs that a policy games its reward: the one home of what each alarm means. Torch-free."""

from dataclasses import dataclass

from trainer.contracts import AlarmData


@dataclass(frozen=True)
class Sign:
    """`title` in lists; `shows` ends "... of the responses", `look` says what to look for in them."""

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
}


def title(signal: str, subject: str) -> str:
    """Of an alarm. A signal of a later program is called by its name."""
    sign = SIGNALS.get(signal)
    return sign.title.format(subject=subject) if sign else signal


def told(data: AlarmData, step: int) -> str:
    """The alarm in a sentence or two."""
    sign = SIGNALS.get(data.signal)
    shows = sign.shows.format(subject=data.subject) if sign else f"show {data.signal}"
    before = f"{data.before:.0%} at first"
    text = f"{data.share:.0%} of the responses of step {step} {shows}; {before}, more since step {data.since}."
    if data.paid is None and not data.part:
        return text
    where = f" in “{data.part}”" if data.part else ""
    return f"{text} They earn more{where} than others of their prompt."
