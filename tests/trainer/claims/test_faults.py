"""The task of the claim `rationale`: its label, its reasons, its shortcut, and what the model is taught."""

import random

from trainer.claims import faults
from trainer.contracts.pairs import human_reasons, labelled_pairs
from trainer.rewards.pair_judgements import read_pair_judgement


def test_the_worse_answer_has_the_grave_fault_and_people_name_it() -> None:
    for example in faults.examples():
        (pair,) = labelled_pairs(example, "")
        reasons, blank = human_reasons(example, pair)
        better, worse = (set(response.text.split()) for response in example.responses)
        assert not blank and pair.decided and reasons == sorted(worse & set(faults.GRAVE))
        assert len(reasons) == 1 and not better & set(faults.GRAVE)
        assert len(better & set(faults.LIGHT)) == 2 and len(worse & set(faults.LIGHT)) == 1


def test_length_agrees_with_85_percent_of_training_and_with_no_held_out_pair() -> None:
    longer: dict[str, list[bool]] = {"train": [], "heldout": []}
    for example in faults.examples():
        better, worse = example.responses
        longer[example.split or ""].append(len(better.text) > len(worse.text))
    assert sum(longer["train"]) / len(longer["train"]) == faults.AGREES
    assert len(longer["heldout"]) == faults.HELD_OUT and not any(longer["heldout"])
    assert faults.examples() == faults.examples() != faults.examples(seed=6)


def test_the_two_ways_to_judge_are_taught_alike_and_neither_tells_grave_from_light() -> None:
    lessons = faults.lessons(random.Random(0))  # noqa: S311 - a task, not a secret
    said = [next(lessons) for _ in range(2000)]
    reasons = []
    for (message,), text in said:
        judgement = read_pair_judgement(text, "lines")
        assert judgement.well_formed and abs(judgement.strength or 0) == 1
        (reason,) = judgement.reasons
        reasons.append(reason)
        first, second = (block.split("\n")[1] for block in message.content.split("<A>")[1].split("<B>"))
        for_first = judgement.strength == -1
        if reason == faults.LONGER:
            assert for_first == (len(first) > len(second))
        else:
            assert for_first == (reason in second.split())
    by_length = reasons.count(faults.LONGER) / len(reasons)
    grave = sum(reason in faults.GRAVE for reason in reasons) / len(reasons)
    assert abs(by_length - 0.5) < 0.05 and abs(grave - 0.5 * 0.4) < 0.04
