"""Layouts that trainers read: TRL, verl, OpenRLHF. Pairs are rows of their own; ties and undecided pairs are in none."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from trainer.contracts import Example, Preference

from .. import label_origin
from ..base_exporter import ANSWER, MESSAGES, PAIR, Exporter, Row, facts, messages, rubric, schema


class Decided(NamedTuple):
    """A pair with a better side, as its raters see it on average: `strength` above 0. `by`: the origins of its labels."""

    better: str
    worse: str
    strength: float
    by: list[str]


def decided(example: Example) -> Iterator[Decided]:
    """Each pair of responses with a better side."""
    texts = {response.id: response.text for response in example.responses}
    votes: dict[tuple[str, str], list[tuple[int, Preference]]] = {}
    for each in example.preferences:
        if each.verdict == "compared" and each.strength is not None:
            turned = (each.b, each.a) in votes
            pair = (each.b, each.a) if turned else (each.a, each.b)
            votes.setdefault(pair, []).append((-each.strength if turned else each.strength, each))
    for (a, b), given in votes.items():
        mean = sum(strength for strength, _ in given) / len(given)
        if mean:
            better, worse = (a, b) if mean < 0 else (b, a)
            yield Decided(texts[better], texts[worse], abs(mean), label_origin.label_origins(each for _, each in given))


def best(example: Example) -> tuple[str, list[str]] | None:
    """The answer to imitate, and the origins of its labels: the better answer of the first decided pair, else the reference, else a single
    response."""
    for pair in decided(example):
        return pair.better, pair.by
    if example.reference is not None:
        return example.reference, label_origin.of_reference(example)
    if len(example.responses) == 1:
        return example.responses[0].text, label_origin.of_response(example.responses[0].origin)
    return None


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def _preferences(example: Example) -> Iterator[Row]:
    for pair in decided(example):
        sides = {"chosen": _said(pair.better), "rejected": _said(pair.worse), "strength": pair.strength}
        yield {"prompt": messages(example), **sides, **facts(example, pair.by)}


def _sft(example: Example) -> Iterator[Row]:
    if (found := best(example)) is not None:
        yield {"prompt": messages(example), "completion": _said(found[0]), **facts(example, found[1])}


def _truth_by(example: Example) -> list[str]:
    """The origins of the rubric and the reference."""
    return list(dict.fromkeys([*label_origin.of_rubric(example), *label_origin.of_reference(example)]))


def _rl(example: Example) -> Iterator[Row]:
    yield {
        "prompt": messages(example),
        "rubric": rubric(example),
        "reference": example.reference,
        **facts(example, _truth_by(example)),
    }


def _verl(example: Example) -> Iterator[Row]:
    truth = rubric(example) or example.reference
    yield {
        "data_source": example.source or "touchstone",
        "prompt": messages(example),
        "ability": example.domain,
        "reward_model": {"style": "rubric" if example.rubric else "rule", "ground_truth": truth},
        "extra_info": {"index": example.key, "split": example.split, "reference": example.reference},
        **facts(example, _truth_by(example)),
    }


def _openrlhf_pairs(example: Example) -> Iterator[Row]:
    for pair in decided(example):
        asked = messages(example)
        sides = {"chosen": asked + _said(pair.better), "rejected": asked + _said(pair.worse)}
        yield {**sides, **facts(example, pair.by)}


def _openrlhf_prompts(example: Example) -> Iterator[Row]:
    yield {
        "input": messages(example),
        "label": rubric(example) or example.reference,
        **facts(example, _truth_by(example)),
    }


HELD = frozenset({"key", "prompt", "split", "group", "domain", "source"})
EXPORTERS = (
    Exporter(
        name="trl_preference",
        label="TRL preference",
        help="prompt, chosen, rejected as conversations: DPO and reward models.",
        rows=_preferences,
        holds=HELD | {"responses", "preferences"},
        schema=schema(
            ("prompt", MESSAGES), ("chosen", MESSAGES), ("rejected", MESSAGES), ("strength", pa.float64()), extras=True
        ),
        importer="trl_preference",
        needs=PAIR,
    ),
    Exporter(
        name="trl_sft",
        label="TRL SFT",
        help="prompt and completion: the better answer of the first pair, else the reference, else the only response.",
        rows=_sft,
        holds=HELD,
        schema=schema(("prompt", MESSAGES), ("completion", MESSAGES), extras=True),
        importer="trl_conversation",
        needs=ANSWER,
    ),
    Exporter(
        name="trl_rl",
        label="TRL RL",
        help="prompt with rubric (JSON text) and reference: GRPO, RLOO.",
        rows=_rl,
        holds=HELD | {"rubric", "reference"},
        schema=schema(("prompt", MESSAGES), ("rubric", pa.string()), ("reference", pa.string()), extras=True),
        importer="rl_prompts",
    ),
    Exporter(
        name="verl",
        label="verl",
        help="data_source, prompt, ability, reward_model, extra_info; the ground truth is the rubric as JSON text, else the reference.",
        rows=_verl,
        holds=HELD | {"rubric", "reference"},
        schema=schema(
            ("data_source", pa.string()),
            ("prompt", MESSAGES),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct([("index", pa.string()), ("split", pa.string()), ("reference", pa.string())])),
            extras=True,
        ),
        importer="rl_prompts",
    ),
    Exporter(
        name="openrlhf_preference",
        label="OpenRLHF preference",
        help="chosen and rejected as whole conversations: --chosen_key chosen --rejected_key rejected --apply_chat_template.",
        rows=_openrlhf_pairs,
        holds=HELD | {"responses", "preferences"},
        schema=schema(("chosen", MESSAGES), ("rejected", MESSAGES), extras=True),
        importer="trl_preference",
        needs=PAIR,
    ),
    Exporter(
        name="openrlhf_prompt",
        label="OpenRLHF prompts",
        help="input as a conversation and label (rubric as JSON text, else the reference): --input_key input --label_key label.",
        rows=_openrlhf_prompts,
        holds=HELD | {"rubric", "reference"},
        schema=schema(("input", MESSAGES), ("label", pa.string()), extras=True),
        importer="rl_prompts",
    ),
)
