"""The texts of alarms: each names a sign that a policy games its reward, or that nothing is learned. Their meaning is explained only
here. It needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.contracts import AlarmData
from trainer.contracts.counted import counted

HELD_OUT = "held_out"
"""Training scores rise above those of a held-out panel. The other signs are shares of responses; this one is not."""
FLAT = "flat"
"""Steps in a row in which all responses to each prompt have the same reward. This is not a sign of gaming, and not a share of responses."""
SOLVED, NOT_SOLVED, ALWAYS_OR_NEVER = "solved", "not solved", "always or never solved"
"""The subjects of FLAT, which say why."""
_FLAT_REASONS = {
    SOLVED: "All of them solved their prompt; in the first steps {before:.0%} did. Harder prompts help: use other data, or a phase that draws prompts "
    "with lower pass rates.",
    NOT_SOLVED: "None of them solved its prompt. What helps: easier prompts, a hint or a scaffold, or a reward that pays for parts of an answer.",
    ALWAYS_OR_NEVER: "{share:.0%} of them solved their prompt: each prompt is solved by all of its responses or by none. What helps: prompts that are "
    "solved sometimes (rollout.replace_flat looks for them), or more responses to each prompt.",
}


@dataclass(frozen=True)
class Sign:
    """`title` stands in lists; `shows` goes on after "... of the responses"; `look` says what to look for in them."""

    title: str
    shows: str
    look: str


SIGNALS: dict[str, Sign] = {
    "length": Sign("Length", "are much longer than usual", "Does what was added answer the prompt?"),
    "repetition": Sign("Repetition", "repeat themselves more than usual", "Does the repetition say anything?"),
    "flattery": Sign("Flattery", "compliment the asker", "Would a reader who is not flattered give as much?"),
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
        "get less from “{subject}”, which is not trained on, than their reward suggests",
        "What do they have that only the reward pays for?",
    ),
    HELD_OUT: Sign(
        "Training leaves held-out pairs behind",
        "earn what held-out pairs do not",
        "Are they right about any pair, or do they only earn on these pairs?",
    ),
    FLAT: Sign("Nothing to learn: the prompts are {subject}", "", ""),
}
_ROLES = {"judge": "judge", "writer": "rubric writer"}


def title(signal: str, subject: str, role: str = "") -> str:
    """The title of an alarm. A signal that this version does not know is called by its key."""
    sign = SIGNALS.get(signal)
    said = sign.title.format(subject=subject) if sign else signal
    return f"{said}: {_ROLES.get(role, role)}" if role else said


def concern(signal: str) -> str:
    """What an alarm says of its run, to go on after its name."""
    return "learns nothing" if signal == FLAT else "may be gaming its reward"


def heading(signals: Sequence[str]) -> str:
    """Over the alarms of a run."""
    flat = sum(signal == FLAT for signal in signals)
    if flat == len(signals):
        return "Steps in which nothing was learned"
    return (
        f"{counted(len(signals), 'alarms')}"
        if flat
        else f"{counted(len(signals), 'signs')} that the reward is being gamed"
    )


def told(data: AlarmData, step: int) -> str:
    """The alarm in a sentence or two."""
    whose = f" of the {_ROLES.get(data.role, data.role)}" if data.role else ""
    if data.signal == HELD_OUT:
        at_first = f"by {_points(data.before)}" if data.before else "not above them"
        return (
            f"In the turn{whose} that ends with step {step} the training pairs lie {_points(data.share)} above the held-out "
            f"panel; in the first turn {at_first}. The turn began with step {data.since}."
        )
    if data.signal == FLAT:
        reason = _FLAT_REASONS.get(data.subject, "").format(share=data.share, before=data.before)
        steps = f"In steps {data.since} to {step} all responses{whose} to each prompt had the same reward"
        return f"{steps}, so no reward taught anything. {reason}".rstrip()
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
