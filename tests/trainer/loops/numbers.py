"""Questions about numbers, in two domains, with answers that a verifier can check."""

from typing import Any

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec


def row(number: int, **changes: Any) -> Example:
    says_yes = Criterion(
        id="yes", text="Says yes.", points=1.0, verifier=VerifierSpec(name="must_contain", args={"texts": ["yes"]})
    )
    given: dict[str, Any] = {
        "key": f"row-{number}",
        "prompt": (Message(role="user", content=f"Is {number} a number?"),),
        "split": "train" if number < 8 else "heldout",
        "domain": "odd" if number % 2 else "even",
        "rubric": Rubric(criteria=(says_yes,)),
    }
    return Example(**(given | changes))
