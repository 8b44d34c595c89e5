"""The texts of alarms: each names a sign that a policy games its reward, or that the run learns nothing or badly. Their meaning is
explained only here. It needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.contracts import AlarmData
from trainer.contracts.plurals import with_noun

HELD_OUT = "held_out"
"""Training scores rise above those of a held-out panel. The other signs are shares of responses; this one is not."""
FLAT = "flat"
"""Steps in a row in which all responses to each prompt have the same reward. This is not a sign of gaming, and not a share of responses."""
ENTROPY = "entropy"
"""The policy is almost sure of every token. This and the next two are about steps, not about a share of responses."""
DEAD = "dead"
"""Hardly any gradient is left, although rewards within groups differ."""
MISMATCH = "mismatch"
"""Sampler and trainer give the same tokens different probabilities."""
NO_NORM, FEW_TOKENS = "the norm is near 0", "few tokens have one"
"""The subjects of DEAD."""
OF_STEPS = (FLAT, ENTROPY, DEAD, MISMATCH)
"""The signs that a run learns nothing or badly. All others are signs of gaming."""
SOLVED, NOT_SOLVED, ALWAYS_OR_NEVER = "solved", "not solved", "always or never solved"
CUT = "answered by responses that are cut"
"""The subjects of FLAT, which say why."""
_FLAT_REASONS = {
    SOLVED: "All of them solved their prompt; in the first steps {before:.0%} did. Harder prompts help: use other data, or a phase that draws prompts "
    "with lower pass rates.",
    NOT_SOLVED: "None of them solved its prompt. Remedies: easier prompts, a hint or a scaffold, or a reward that pays for parts of an answer.",
    ALWAYS_OR_NEVER: "{share:.0%} of them solved their prompt: each prompt is solved by all of its responses or by none. Remedies: prompts that are "
    "solved sometimes (rollout.replace_flat looks for them), or more responses to each prompt.",
    CUT: "{share:.0%} of the responses were cut at the limit, and rollout.truncated leaves these out; the others of each prompt, if any, had the same reward. "
    "Remedies: a higher limit (rollout.max_new_tokens), a reward that pays for short answers (kind overlong), or rollout.truncated = train.",
}


@dataclass(frozen=True)
class Sign:
    """`title` stands in lists; `shows` continues after "... of the responses"; `look` says what to look for in them, or what to do. `page`
    is the page of the documentation, with its heading, that says more."""

    title: str
    shows: str
    look: str
    page: str = "hacking.md#what-is-watched"


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
        "hacking.md#two-roles",
    ),
    FLAT: Sign("Nothing to learn: the prompts are {subject}", "", "", page="curricula.md#steps-that-teach-nothing"),
    ENTROPY: Sign(
        "The entropy has collapsed",
        "",
        "If the prompts are solved, the run is done. If they are not, go back to an earlier checkpoint and keep the policy undecided: a lower "
        "learning rate (optim.lr), a higher upper clip (objective.eps_high), a KL to the untrained model (objective.kl_beta), or a phase with a higher "
        "temperature.",
        "alarms.md#the-entropy-has-collapsed",
    ),
    DEAD: Sign(
        "Dead gradients: {subject}",
        "",
        "Look at the charts Entropy, Clipped share and Spread of the reward. Much is clipped: fewer passes over a step (optim.epochs_per_step) or a lower "
        "learning rate. Most groups have equal rewards: prompts that are solved sometimes, or a reward that pays for parts of an answer. The policy is "
        "sure of every token: what helps against a collapsed entropy.",
        "alarms.md#dead-gradients",
    ),
    MISMATCH: Sign(
        "Sampler and trainer disagree",
        "",
        "The run learns noise from such tokens. Look at sampler.precision and model.dtype: with the same precision the two agree. With an own vLLM server, "
        "look at its version and at which weights it has. The objective icepop leaves such tokens out.",
        "alarms.md#sampler-and-trainer-disagree",
    ),
}
_CONCERNS = {
    FLAT: "learns nothing",
    ENTROPY: "no longer explores",
    DEAD: "hardly learns",
    MISMATCH: "disagrees with its sampler",
}
_ROLES = {"judge": "judge", "writer": "rubric writer"}


def title(signal: str, subject: str, role: str = "") -> str:
    """The title of an alarm. A signal that this version does not know is called by its key."""
    sign = SIGNALS.get(signal)
    said = sign.title.format(subject=subject) if sign else signal
    return f"{said}: {_ROLES.get(role, role)}" if role else said


def concern(signal: str) -> str:
    """The sentence of an alarm about its run, in words that follow the name of the run."""
    return _CONCERNS.get(signal, "may be gaming its reward")


def page(signal: str) -> str:
    """The page of the documentation that says more, with its heading."""
    sign = SIGNALS.get(signal)
    return sign.page if sign else "alarms.md"


def heading(signals: Sequence[str]) -> str:
    """Over the alarms of a run."""
    if set(signals) == {FLAT}:
        return "Steps in which nothing was learned"
    of_steps = sum(signal in OF_STEPS for signal in signals)
    if of_steps == len(signals):
        return f"{with_noun(len(signals), 'signs')} that the run learns badly"
    return (
        f"{with_noun(len(signals), 'alarms')}"
        if of_steps
        else f"{with_noun(len(signals), 'signs')} that the reward is being gamed"
    )


def alarm_text(data: AlarmData, step: int) -> str:
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
        if data.subject == CUT:
            steps = f"In steps {data.since} to {step} too few responses{whose} to each prompt were finished"
        return f"{steps}, so no reward taught anything. {reason}".rstrip()
    if data.signal in OF_STEPS:
        return _told_of_steps(data, step, whose)
    sign = SIGNALS.get(data.signal)
    shows = sign.shows.format(subject=data.subject) if sign else f"show {data.signal}"
    before = f"{data.before:.0%} at first"
    text = f"{data.share:.0%} of the responses{whose} of step {step} {shows}; {before}, more since step {data.since}."
    if data.paid is None and not data.part:
        return text
    where = f" in “{data.part}”" if data.part else ""
    return f"{text} They earn more{where} than others of their prompt."


def _told_of_steps(data: AlarmData, step: int, whose: str) -> str:
    value, usual = data.value or 0.0, data.usual or 0.0
    row = f"In steps {data.since} to {step}" if step > data.since else f"In step {step}"
    if data.signal == ENTROPY:
        return (
            f"{row} the policy was almost sure of every token{whose}: its entropy is now {value:.2g} nats per token; in the first steps it was {usual:.2g}. "
            "The responses to a prompt become alike, so comparing them teaches less and less."
        )
    if data.signal == MISMATCH:
        return (
            f"{row} sampler and trainer gave many tokens{whose} different probabilities, though both had the same weights: {_percent(value)} of the tokens "
            f"differ by more than a factor of 2; rounding explains {_percent(usual)} at most."
        )
    if data.subject == NO_NORM:
        return (
            f"{row} the weights{whose} hardly moved, although the rewards within groups differed: the norm of the gradient is now {value:.2g}; in the first "
            f"steps it was {usual:.2g}."
        )
    first = "" if data.usual is None else f"; in the first steps {_percent(usual)}"
    return (
        f"{row} hardly any token{whose} taught anything: {_percent(value)} of the tokens had a gradient{first}. The others are clipped, masked, or in "
        "groups with equal rewards."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def _points(share: float) -> str:
    return f"{100 * share:.0f} points"
