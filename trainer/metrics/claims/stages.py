"""Plans about runs of several stages: distilling what earlier stages could do, and learning the run's own best answers. Torch-free."""

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import TINY

_SEEDS = (0, 1, 2, 3, 4)
_FIRST, _SECOND = "eval/domain/first", "eval/domain/second"
_NOTE = (
    "A random model of two layers that was taught to say syllables by Zipf's law, on topics that are each about one syllable "
    "(trainer/claims/toy.py): four in a domain called first, four in one called second. An answer has room for four syllables. "
    "The reward of a response is 1 or 0."
)
_SHARED = {key: value for key, value in TINY.items() if key != "scaffold"} | {"leaves": "last"}


def _cross_stage(name: str, title: str, steps: tuple[int, int, int], seeds: tuple[int, ...]) -> Plan:
    """A plan with `steps` steps of the first domain, of the second, and of distilling."""
    first, second, distil = steps
    learnt = first + second
    learn = [
        {"do": "reinforce", "steps": first, "domain": "first"},
        {"do": "reinforce", "steps": second, "domain": "second"},
    ]
    both = f"{first} steps on the first domain, {second} on the second, {distil} that distil both"
    settings = {
        "steps": learnt + distil,
        "evaluation": {"every": 10, "samples": 8},
        "distillation": {"prompts_per_step": 64},
    }
    return Plan(
        name,
        title,
        "GLM-5 (2026)",
        arms=(
            Arm("second", f"{first} steps on the first domain, then on the second to the end", {"stages": learn}),
            Arm("distilled", both, {"stages": [*learn, {"do": "distil", "steps": distil}]}),
        ),
        claims=_cross_stage_claims(first, second),
        sizes={"tiny": Setting(merge_config(_SHARED, settings), seeds, note=_NOTE)},
        recipe="chain",
        task="halves",
        measured="curves",
        columns=(
            ("score at the end", "eval/rubric_score:last"),
            (f"first domain at step {first}", f"{_FIRST}:at_{first}"),
            (f"at step {learnt}", f"{_FIRST}:at_{learnt}"),
            ("at the end", f"{_FIRST}:last"),
            (f"second domain at step {learnt}", f"{_SECOND}:at_{learnt}"),
            ("at the end", f"{_SECOND}:last"),
            ("gap to the teachers", "eval/gap:last"),
        ),
        summary="The policy learns one domain after the other. Then the policies of both stages teach one policy.",
    )


def _cross_stage_claims(first: int, second: int) -> tuple[Claim, ...]:
    learnt, words = first + second, {40: "forty", 80: "eighty"}[second]
    lost, back = f"{_FIRST}:from_{first}_to_{learnt}", f"{_FIRST}:since_{learnt}"
    return (
        Claim(
            f"{words} steps on the second domain make the policy forget the first",
            (ClaimPart(f"score on the first domain, lost since step {first}", lost, "second", sign=-1),),
        ),
        Claim(
            "if the policies of both stages are distilled, the first domain comes back",
            (
                ClaimPart("score on the first domain, over the end of the second stage", back, "distilled"),
                ClaimPart(
                    "score on the first domain, over as many more steps of the second stage",
                    f"{_FIRST}:last",
                    "distilled",
                    "second",
                ),
            ),
        ),
        Claim(
            "the score over both domains is higher than after as many steps without distilling",
            (ClaimPart("score over all prompts", "eval/rubric_score:last", "distilled", "second"),),
        ),
        Claim(
            "the score on the second domain by itself is higher too (ours: the paper claims that nothing is lost)",
            (ClaimPart("score on the second domain", f"{_SECOND}:last", "distilled", "second"),),
        ),
    )


_TITLE = "Distilling both stages' policies against ending with the second stage"
CROSS_STAGE = _cross_stage("cross_stage", _TITLE, (40, 40, 40), _SEEDS)
CROSS_STAGE_LEARNT = _cross_stage(
    "cross_stage_learnt", f"{_TITLE}, if the second stage is learnt", (20, 80, 40), (5, 6, 7, 8, 9)
)
"""A plan made after `cross_stage`, whose second stage most seeds did not learn in 40 steps. Its seeds are others."""

_LEVELS = ("easy", "middle", "hard")

SELF_DISTIL = Plan(
    "self_distil",
    "RL, the best answers taught to the model of the start, and RL again, against RL alone at equal rollouts",
    "GLM-4.5 (2025)",
    arms=(
        Arm("alone", "80 steps of RL: 5,120 responses", {"stages": [{"do": "reinforce", "steps": 80}]}),
        Arm(
            "iterated",
            "30 steps of RL, 1,024 responses to choose from, 16 steps that imitate, 34 of RL: 5,120 responses",
            {
                "stages": [
                    {"do": "reinforce", "steps": 30},
                    {"do": "imitate", "steps": 16, "begin": "start"},
                    {"do": "reinforce", "steps": 34},
                ],
                "imitation": {"prompts": 32, "responses": 32, "correct": 1, "best": 4},
            },
        ),
    ),
    claims=(
        Claim(
            "at equal rollouts, self-distillation has a higher held-out score than RL alone",
            (ClaimPart("score over all prompts", "eval/rubric_score:last", "iterated", "alone"),),
        ),
        Claim(
            "self-distillation raises the score on prompts that are neither solved nor out of reach at the start",
            (ClaimPart("score on prompts of middle difficulty", "eval/domain/middle:last", "iterated", "alone"),),
        ),
        Claim(
            "a new start that imitates keeps what the first round had learned (ours)",
            (ClaimPart("score over all prompts, step 46 less step 30", "eval/rubric_score:from_30_to_46", "iterated"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(_SHARED, {"steps": 80, "evaluation": {"every": 2, "samples": 4}}),
            _SEEDS,
            note="A random model of two layers that was taught to say syllables by Zipf's law, on topics of three difficulties that are known by "
            "construction (trainer/claims/toy.py). The reward of a response is 1 or 0.",
        )
    },
    recipe="chain",
    task="graded",
    measured="curves",
    columns=(
        ("score at the end", "eval/rubric_score:last"),
        *((f"{level} prompts", f"eval/domain/{level}:last") for level in _LEVELS),
        ("score at step 30", "eval/rubric_score:at_30"),
        ("at step 46", "eval/rubric_score:at_46"),
        ("responses kept to imitate", "sift/kept:last"),
    ),
    summary="The untrained model learns the policy's best answers, and RL continues from there.",
)
