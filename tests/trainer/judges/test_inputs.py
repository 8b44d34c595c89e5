from trainer.contracts import Example, Message, Preference, Reason, Response
from trainer.judges.inputs import of_example

from .inputs import CRITERIA

EXAMPLE = Example(
    key="france",
    prompt=(Message(role="user", content="Capital?"),),
    rubric={"criteria": CRITERIA},
    responses=tuple(Response(id=name, text=name.upper()) for name in ("x", "y", "z")),
    preferences=(
        Preference(a="z", b="x", strength=1, reasons=(Reason(text="shorter"),)),
        Preference(a="x", b="z", strength=1, reasons=(Reason(text="shorter"), Reason(text="right"))),
        Preference(a="x", b="y", strength=1, reasons=(Reason(text="about another pair"),)),
    ),
)


def test_a_pair_is_the_one_that_was_compared_in_its_order():
    given = of_example(EXAMPLE, pair=True)
    assert list(given.responses.items()) == [("z", "Z"), ("x", "X")]
    assert given.human_reasons == ("shorter", "right") and given.rationale == "shorter\nright"


def test_without_comparisons_the_first_two_responses_are_the_pair():
    bare = EXAMPLE.model_copy(update={"preferences": (), "rubric": None})
    assert list(of_example(bare, pair=True).responses) == ["x", "y"]
    assert list(of_example(bare, pair=False).responses) == ["x", "y", "z"]
    assert of_example(bare, pair=False).criteria == ()
