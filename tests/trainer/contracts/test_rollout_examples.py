"""The samples of a run as examples: which responses stay, and the reasons for those that do not."""

import pytest

from trainer.contracts import Example, Message, Response
from trainer.contracts.rollout_examples import SampledResponse, WantedResponses, gather
from trainer.contracts.training_counts import training_counts

EXAMPLES = {
    key: Example(
        key=key,
        prompt=(Message(role="user", content=f"say {key}"),),
        split="train",
        reference="r",
        responses=(Response(id="old", text="before"),),
        meta={"level": 3},
    )
    for key in ("a", "b")
}


def sampled(
    index: int, text: str, reward: float | None, key: str = "a", step: int = 4, **more: object
) -> SampledResponse:
    return SampledResponse(key, step, 0, index, text, reward, **more)  # type: ignore[arg-type]


FOUR = [sampled(0, "x", 0.5), sampled(1, "y", 1.0), sampled(2, "x", 0.9), sampled(3, "z", 1.0)]


def test_a_prompt_keeps_what_it_is_and_gets_its_responses_with_their_rewards() -> None:
    found = gather(FOUR, EXAMPLES, WantedResponses(), "tiny, run 7")
    (example,) = found.examples
    assert [response.id for response in example.responses] == ["s4-0-0", "s4-0-1", "s4-0-3"]
    assert example.meta["rewards"] == {"s4-0-0": 0.5, "s4-0-1": 1.0, "s4-0-3": 1.0}
    assert (
        example.meta["steps"]["s4-0-1"] == 4 and example.meta["model"] == "tiny, run 7" and example.meta["level"] == 3
    )
    assert {response.origin for response in example.responses} == {"tiny, run 7"}
    assert (example.key, example.split, example.reference) == ("a", "train", "r")
    assert found.left_out == {"repeated": 1}
    assert training_counts(example)["valued"] == 1  # `sft` with source 'best' needs this


def test_the_best_are_taken_and_of_equal_ones_the_earlier() -> None:
    (example,) = gather(FOUR, EXAMPLES, WantedResponses(best=1), "m").examples
    assert [response.text for response in example.responses] == ["y"]
    assert training_counts(example)["turns"] == 1  # one answer counts as a demonstration
    found = gather(FOUR, EXAMPLES, WantedResponses(best=2), "m")
    assert [response.text for response in found.examples[0].responses] == ["y", "z"]
    assert found.left_out == {"repeated": 1, "not_best": 1}


@pytest.mark.parametrize(
    ("one", "wanted", "reason"),
    [
        (sampled(0, "x", None), WantedResponses(), "no_reward"),
        (sampled(0, "x", 0.2), WantedResponses(least=0.5), "low"),
        (sampled(0, "x", 1.0, cut=True), WantedResponses(whole=True), "cut"),
        (sampled(0, "x", 1.0, key="gone"), WantedResponses(), "no_example"),
    ],
)
def test_what_is_left_out_is_counted_by_its_reason(one: SampledResponse, wanted: WantedResponses, reason: str) -> None:
    found = gather([one], EXAMPLES, wanted, "m")
    assert not found.examples and found.left_out == {reason: 1} and found.left_out_words.startswith("1 ")


def test_responses_of_several_steps_to_one_prompt_are_one_example() -> None:
    rows = [sampled(0, "x", 0.1, step=1), sampled(0, "b", 0.2, key="b", step=1), sampled(0, "y", 0.3, step=2)]
    found = gather(rows, EXAMPLES, WantedResponses(), "m")
    assert [example.key for example in found.examples] == ["a", "b"]
    assert found.examples[0].meta["steps"] == {"s1-0-0": 1, "s2-0-0": 2}
