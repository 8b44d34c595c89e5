"""Every formula of the command line, in the order of its list. A new one is a function and a line here."""

from . import curricula, judgement, training_judges
from .base import Compute, formula

_FUNCTIONS: tuple[Compute, ...] = (
    judgement.mams_reward,
    judgement.rationale_ap,
    judgement.rationale_hybrid,
    judgement.remax_pairwise,
    judgement.swap_consistent,
    judgement.cohens_d,
    judgement.likert_score,
    judgement.pad_group,
    judgement.reward_expression,
    training_judges.rubric_arm_judge,
    training_judges.rubric_arm_writer,
    training_judges.arm_variances,
    training_judges.rubric_format,
    training_judges.judgement_format,
    curricula.toggle_budget,
    curricula.toggle_reward,
    curricula.wpsm,
    curricula.ahrl,
    curricula.budget,
    curricula.kcenter,
    curricula.sliding_ppl,
    curricula.pass_at_k,
    curricula.stale_keep,
)
FORMULAS = {each.name: each for each in map(formula, _FUNCTIONS)}
