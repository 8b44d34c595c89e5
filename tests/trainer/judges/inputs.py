"""One input that every kind can judge, and an answer to each kind's first question."""

import json

from trainer.contracts import Criterion, Message, VerifierSpec
from trainer.judges.inputs import JudgeInput

CRITERIA = (
    Criterion(id="capital", text="Names Paris.", points=5, kind="hard", importance="essential"),
    Criterion(
        id="short", text="Has at most 20 words.", points=2, verifier=VerifierSpec(name="word_count", args={"max": 20})
    ),
    Criterion(id="sure", text="Sounds unsure.", points=-1, importance="pitfall"),
)
INPUT = JudgeInput(
    example="france",
    conversation=(Message(role="user", content="What is the capital of France?"),),
    responses={"r1": "Paris.", "r2": "Perhaps Lyon?"},
    criteria=CRITERIA,
    reference="Paris",
    generated=("Says Paris", "Is polite"),
    reference_items=("Names Paris.", "Is one sentence."),
    human_reasons=("r1 is right", "r2 is unsure"),
    model_reasons=("A names Paris",),
    rationale="The first one is right, the second guesses.",
    verdict="A",
)
SEEN = {"explanation": "It says so."}
BOTH = {**SEEN, "a_meets": True, "b_meets": False}
ANSWERS = {
    "criterion": {**SEEN, "met": True},
    "checklist": {"verdicts": [{"number": 1, **SEEN, "met": True}, {"number": 2, **SEEN, "met": False}]},
    "likert": {"ratings": [{"number": 1, **SEEN, "rating": 9}, {"number": 2, **SEEN, "rating": 2}]},
    "pointwise": {**SEEN, "rating": 7},
    "pairwise": {"reasons": ["A names Paris"], "verdict": "A"},
    "pairwise_rubric": {
        "gatekeeper": {"number": 1, **BOTH},
        "criteria": [{"number": number, **BOTH} for number in (1, 2, 3)],
        "verdict": "A",
    },
    "rubric_generator": {
        "items": [
            {"text": "Names Paris", "kind": "hard", "importance": "essential", "points": 5},
            {"text": "Rambles", "kind": "principle", "importance": "pitfall", "points": -2},
        ]
    },
    "rubric_quality": {"problems": [], **SEEN, "score": 3},
    "rubric_matcher": {"matches": [{"generated": 1, "reference": 1}]},
    "necessity": {"items": [{"number": n, **SEEN, "necessity": 4, "rigidity": 2} for n in (1, 2, 3)]},
    "reasons": {"reasons": ["The first is right"], "dropped": [{"text": "guesses", "why": "vague"}]},
    "reason_matcher": {"rows": [{"human": 1, "scores": [1.0]}, {"human": 2, "scores": [0.0]}]},
    "flaws": {"reasons": [{"number": 1, **SEEN, "rests_on": "evidence", "flaws": []}]},
}


def answer(kind: str) -> str:
    return json.dumps(ANSWERS[kind])
