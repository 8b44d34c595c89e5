"""Claims of papers as plans: what is compared, what decides, and the verdict. No module here imports torch: the web side reads them too."""

from .budgets import BUDGETS
from .curricula import HINTS, STAGES, STAGES_NEAR
from .downstream import JUDGE_POLICY
from .judges import RATIONALE
from .lengths import TOGGLE, TOGGLE_SMOLLM
from .mismatch import QUANTIZED, STALE, WPSM
from .plan import SIZES, TASK_FORM, Arm, Claim, ClaimPart, Plan, Setting, Size
from .policies import OAPL, OAPL_OFFLINE, RUSCARL
from .scaffolds import RUSCARL_SHAPE
from .schedules import TAILS, TAILS_STILL
from .selection import KCENTER
from .stages import CROSS_STAGE, CROSS_STAGE_LEARNT, SELF_DISTIL
from .turns import RUBRIC_ARM
from .verdict import RULE, ClaimPartResult, ClaimResult, Measures, Verdict, judge_all, mean_over_seeds
from .writers import MAMS, RUBRIC_PAIRS

__all__ = [
    "PLANS",
    "RULE",
    "SIZES",
    "TASK_FORM",
    "Arm",
    "Claim",
    "ClaimResult",
    "Measures",
    "ClaimPart",
    "ClaimPartResult",
    "Plan",
    "Setting",
    "Size",
    "Verdict",
    "judge_all",
    "mean_over_seeds",
]

PLANS: dict[str, Plan] = {
    plan.name: plan
    for plan in (
        RATIONALE,
        JUDGE_POLICY,
        MAMS,
        RUBRIC_PAIRS,
        RUBRIC_ARM,
        RUSCARL,
        OAPL,
        OAPL_OFFLINE,
        BUDGETS,
        STAGES,
        STAGES_NEAR,
        HINTS,
        CROSS_STAGE,
        CROSS_STAGE_LEARNT,
        SELF_DISTIL,
        KCENTER,
        TOGGLE,
        TOGGLE_SMOLLM,
        WPSM,
        STALE,
        QUANTIZED,
        TAILS,
        TAILS_STILL,
        RUSCARL_SHAPE,
    )
}
