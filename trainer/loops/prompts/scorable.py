"""Finds the examples for which a reward can be computed, and the criteria that it can use."""

from dataclasses import dataclass

from trainer.config import PolicyConfig
from trainer.config.rewards.parts import JudgePart, RewardPart, RubricPart, VerifierPart, needs_rubric
from trainer.contracts import Example, Rubric
from trainer.contracts.plurals import with_noun
from trainer.rewards import Unscored
from trainer.rewards.kinds.rubrics import judged_rubric, verified_rubric

UNJUDGED = "one of their criteria has no verifier, and the reward has no judge for it"


@dataclass
class Unjudged:
    """The amount of data that only a judge could score, if the reward has none. `dropped` counts criteria that were left out for it."""

    prompts: int = 0
    criteria: int = 0
    dropped: int = 0

    def __str__(self) -> str:
        return f"{with_noun(self.criteria, 'criteria')} of {with_noun(self.prompts, 'prompts')} {'has' if self.criteria == 1 else 'have'} no verifier, so no response to them could be scored"


@dataclass(frozen=True)
class FittedRubric:
    """The criteria that are scored; None if nothing needs any."""

    rubric: Rubric | None


def fit(example: Example, config: PolicyConfig, unjudged: Unjudged) -> FittedRubric | str:
    """The part of the example's rubric that is scored, or why no response to it could be scored. Shadow parts need nothing."""
    counted = [part for part in config.rewards if not part.shadow]
    rubric = example.rubric
    if rubric is None:
        if needs_rubric(config.rewards, config.scaffold is not None):
            return "they have no rubric"
    elif any(isinstance(part, RubricPart) and not part.judge for part in counted):
        stripped = _verified(rubric, config, unjudged)
        if isinstance(stripped, str):
            return stripped
        rubric = stripped
    for part in counted:
        if why := _lacks(part, example, rubric):
            return why
    return FittedRubric(rubric)


def _verified(rubric: Rubric, config: PolicyConfig, unjudged: Unjudged) -> Rubric | str:
    """The rubric without criteria that nothing decides, or why the prompt is left out."""
    open_criteria = sum(criterion.verifier is None for criterion in rubric.criteria)
    if not open_criteria:
        return rubric
    unjudged.prompts += 1
    unjudged.criteria += open_criteria
    if config.data.unjudged != "drop_criteria":
        return UNJUDGED
    try:
        kept = verified_rubric(rubric)
    except Unscored as unscored:
        return str(unscored)
    unjudged.dropped += open_criteria
    return kept


def _lacks(part: RewardPart, example: Example, rubric: Rubric | None) -> str:
    """The reason why no response to the example can have this part; empty if one can."""
    try:
        if isinstance(part, VerifierPart):
            verified_rubric(rubric)
        elif isinstance(part, JudgePart) and part.protocol in ("criterion", "checklist"):
            judged_rubric(rubric)
        elif isinstance(part, JudgePart) and part.protocol == "likert":
            if sum(c.points for c in (rubric.criteria if rubric else ()) if c.verifier is None) <= 0:
                return "the points of their criteria that need a judge add up to 0 or less"
        elif isinstance(part, JudgePart) and part.against == "reference" and not example.reference:
            return "they have no reference to compare with"
    except Unscored as unscored:
        return str(unscored)
    return ""
