"""Supervised tuning: the learnt tokens, the tokens that are only read, and the result."""

from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric, VerifierSpec
from trainer.loops.session.errors import RunFailed
from trainer.loops.supervised.demonstrations import prepare_demonstrations

from ...running import run
from ..conftest import events_of, metrics_of, stage_recorder
from ..texts import demonstrations, make_config, user_messages, write_examples


@pytest.fixture(scope="module")
def tokenizer(tiny_dir: Path) -> Any:
    from trainer.inference.models import load_tokenizer

    return load_tokenizer(tiny_dir)


def learnt(example: Example, tokenizer: Any, **data: Any) -> list[str]:
    """The learnt text of each demonstration, with `|` between separate runs of tokens."""
    config = make_config("sft", data=data)
    sets = prepare_demonstrations([example], tokenizer, [tokenizer.eos_token_id], config.data, 9)
    found = []
    for item in sets.train:
        tokens, places = item.turns
        runs: list[list[int]] = []
        for at, place in enumerate(places):
            if not at or place != places[at - 1] + 1:
                runs.append([])
            runs[-1].append(tokens[place])
        found.append("|".join(tokenizer.decode(each) for each in runs))
    return found


DIALOGUE = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="one"),
    Message(role="assistant", content="eins"),
    Message(role="user", content="two"),
    Message(role="assistant", content="zwei"),
)


def test_the_last_turn_or_every_turn_is_learnt_with_its_end(tokenizer: Any) -> None:
    example = Example(key="k", prompt=DIALOGUE)
    assert learnt(example, tokenizer) == ["zwei<|end|>"]
    assert learnt(example, tokenizer, turns="all") == ["eins<|end|>|zwei<|end|>"]


def test_wrong_turns_and_spans_stay_in_the_context_and_are_not_learnt(tokenizer: Any) -> None:
    wrong = Example(key="k", prompt=DIALOGUE, meta={"wrong_turns": [2]})
    assert learnt(wrong, tokenizer, turns="all") == ["zwei<|end|>"]
    sets = prepare_demonstrations(
        [wrong], tokenizer, [tokenizer.eos_token_id], make_config("sft", data={"turns": "all"}).data, 9
    )
    (item,) = sets.train
    whole = prepare_demonstrations(
        [Example(key="k", prompt=DIALOGUE)],
        tokenizer,
        [tokenizer.eos_token_id],
        make_config("sft", data={"turns": "last"}).data,
        9,
    )
    assert item.turns.tokens == whole.train[0].turns.tokens, "the wrong turn keeps its place in the context"
    assert "eins" in tokenizer.decode(list(item.turns.tokens))
    part = Example(key="k", prompt=DIALOGUE, meta={"wrong_spans": [[4, 1, 3], [2, 0, 4]]})
    assert learnt(part, tokenizer, turns="all") == ["<|end|>|z|i<|end|>"]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({"wrong_turns": [4]}, "none of their turns is to be learnt"),
        ({"wrong_turns": 4}, "meta.wrong_turns is not a list"),
        ({"wrong_spans": [[4, 2]]}, "meta.wrong_spans is not a list"),
        ({"wrong_spans": [[4, 2, 99]]}, "a span from 2 to 99 does not lie in its turn"),
    ],
)
def test_marks_that_cannot_be_followed_leave_the_example_out_with_the_reason(
    meta: dict[str, Any], why: str, tokenizer: Any
) -> None:
    with pytest.raises(RunFailed, match=f"1 example left out: .*{why}"):
        learnt(Example(key="k", prompt=DIALOGUE, meta=meta), tokenizer)


def answered(*texts: str, **more: Any) -> Example:
    responses = tuple(Response(id=f"r{i}", text=text) for i, text in enumerate(texts))
    return Example(key="k", prompt=user_messages("go"), responses=responses, **more)


def test_each_source_names_its_answer(tokenizer: Any) -> None:
    assert learnt(answered("only"), tokenizer) == ["only<|end|>"]
    reference = Example(key="k", prompt=user_messages("go"), reference="ideal")
    assert learnt(reference, tokenizer, source="references") == ["ideal<|end|>"]
    ranked = [Preference(a="r0", b="r1", strength=2), Preference(a="r1", b="r2", strength=1)]
    chosen = answered("bad", "good", "best", preferences=ranked)
    assert learnt(chosen, tokenizer, source="chosen") == ["best<|end|>"]
    stored = answered("a", "b", "c", meta={"rewards": {"r0": 0.1, "r1": 0.9, "r2": 0.9, "gone": 5}})
    assert learnt(stored, tokenizer, source="best") == ["b<|end|>"]
    criterion = Criterion(id="c", text="x", points=1, verifier=VerifierSpec(name="must_contain", args={"texts": ["x"]}))
    scored = answered("abc", "axc", rubric=Rubric(criteria=(criterion,)))
    assert learnt(scored, tokenizer, source="best") == ["axc<|end|>"]


@pytest.mark.parametrize(
    ("example", "data", "why"),
    [
        (answered("a", "b"), {}, "they have several answers, none of them chosen"),
        (answered(), {}, "they contain no answer"),
        (answered("a"), {"source": "references"}, "they have no reference answer"),
        (answered("a", "b"), {"source": "chosen"}, "none of their answers was preferred"),
        (answered("a", "b"), {"source": "best"}, "fewer than two of their answers have a reward"),
        (
            answered("a", "b", meta={"rewards": {"r0": 1, "r1": 2}}),
            {"source": "best", "min_reward": 3.0},
            "worth less than data.min_reward = 3",
        ),
        (answered("a" * 50), {"max_tokens": 20}, "longer than data.max_tokens = 20"),
    ],
)
def test_what_has_no_answer_to_learn_is_left_out_and_counted(
    example: Example, data: dict[str, Any], why: str, tokenizer: Any
) -> None:
    with pytest.raises(RunFailed, match=f"1 example left out: .*{why}"):
        learnt(example, tokenizer, **data)


def test_micro_batches_add_up_to_the_batch(tiny_dir: Path, tmp_path: Path) -> None:
    """In one pass or in many, the loss and the weights after the update are the same except for rounding."""
    data = write_examples(demonstrations(12, 2), tmp_path / "data.jsonl")
    losses = {}
    for budget in (64, 4096):
        config = make_config("sft", batch_size=12, optim={"lr": 1e-3, "micro_batch_tokens": budget})
        assert run(config, data, tiny_dir, tmp_path / str(budget))
        found = metrics_of(tmp_path / str(budget))
        losses[budget] = [found[step, "train/loss"] for step in range(1, 5)]
    assert losses[64] == pytest.approx(losses[4096], abs=1e-5)


@pytest.mark.slow
def test_a_planted_rule_is_learnt_and_holds_for_prompts_never_seen(tiny_dir: Path, tmp_path: Path) -> None:
    rows = []
    for example in demonstrations(100, 20):
        args = {"texts": [example.reference], "match": "any"}
        rule = Criterion(id="c", text="rule", points=1, verifier=VerifierSpec(name="must_contain", args=args))
        rows.append(example.model_copy(update={"rubric": Rubric(criteria=(rule,))}))
    config = make_config(
        "sft",
        steps=120,
        batch_size=16,
        optim={"lr": 3e-3},
        evaluation={"every": 0, "generate": True, "max_new_tokens": 6},
        checkpoint={"every": 120},
    )
    assert run(config, write_examples(rows, tmp_path / "data.jsonl"), tiny_dir, tmp_path / "run")
    found = metrics_of(tmp_path / "run")
    assert found[0, "eval/rubric_score"] < 0.1
    assert found[120, "eval/rubric_score"] > 0.9
    assert found[120, "eval/loss"] < found[0, "eval/loss"] / 10
    assert found[120, "eval/scored"] == 20


def test_a_prompt_with_several_chosen_answers_is_answered_and_scored_once(tiny_dir: Path, tmp_path: Path) -> None:
    """One prompt has three chosen answers and is never solved; the other has one and is always solved: the mean over prompts is 1/2."""
    ranked = tuple(Preference(a="r0", b=f"r{i}", strength=2) for i in (1, 2, 3))

    def judged(key: str, verifier: str, *texts: str) -> Example:
        check = VerifierSpec(name=verifier, args={"texts": ["no model says this"]})
        rubric = Rubric(criteria=(Criterion(id="c", text="rule", points=1, verifier=check),))
        given = answered("bad", *texts, preferences=ranked[: len(texts)], rubric=rubric, split="heldout")
        return given.model_copy(update={"key": key, "prompt": user_messages(key)})

    rows = [
        answered("bad", "good", preferences=ranked[:1], split="train"),
        judged("never", "must_contain", "x", "y", "z"),
        judged("always", "must_not_contain", "x"),
    ]
    evaluation = {"every": 0, "generate": True, "max_new_tokens": 4}
    config = make_config("sft", steps=1, batch_size=1, data={"source": "chosen"}, evaluation=evaluation)
    assert run(config, write_examples(rows, tmp_path / "data.jsonl"), tiny_dir, tmp_path / "run")
    found = metrics_of(tmp_path / "run")
    assert (found[1, "eval/scored"], found[1, "eval/rubric_score"]) == (2, 0.5)
    assert found[1, "eval/rubric_score_se"] == pytest.approx(0.5)


def test_an_evaluation_shows_the_conversations_token_by_token(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(demonstrations(4, 2), tmp_path / "data.jsonl")
    assert run(make_config("sft", steps=1), data, tiny_dir, tmp_path / "run")
    shown = [e.data for e in events_of(tmp_path / "run") if e.data.kind == "rollouts"][0].rollouts
    assert [record.example_key for record in shown] == ["row-4", "row-5"]
    assert all(len(r.tokens) == len(r.logprobs) == len(r.mask) == 4 and set(r.mask) == {1.0} for r in shown)
    assert [r.components["loss"] for r in shown] == pytest.approx([-sum(r.logprobs) / 4 for r in shown], abs=1e-4)
    assert shown[0].facts == {"learnt tokens": 4}


@pytest.mark.parametrize("model", [{"lora": None}, {}, {"export": "merged"}], ids=["whole", "adapter", "merged"])
def test_stock_libraries_load_what_comes_out_and_answer_as_the_trainer_does(
    model: dict[str, Any], tiny_dir: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from trainer.loops.supervised.answering import greedy_answers

    kept, keeping = stage_recorder()
    examples = demonstrations(20, 5)
    config = make_config("sft", steps=8, optim={"lr": 5e-3}, model={"name": "tiny", **model})
    assert run(config, write_examples(examples, tmp_path / "data.jsonl"), tiny_dir, tmp_path / "run", make=keeping)
    folder = tmp_path / "run" / "outputs" / "policy"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if (folder / "adapter_config.json").is_file():
        loaded: Any = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_dir), folder)
    else:
        loaded = AutoModelForCausalLM.from_pretrained(folder)
    prompts = [example.prompt for example in examples[:5]]
    answers = greedy_answers(kept[0]._learner, tokenizer, prompts, 8, lambda done, total: None)
    mine = [answer.text for answer in answers]
    for prompt, expected in zip(prompts, mine, strict=True):
        text = tokenizer.apply_chat_template(
            [m.model_dump() for m in prompt], add_generation_prompt=True, tokenize=False
        )
        ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
        out = loaded.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False)
        assert tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True) == expected
    assert len(set(mine)) > 1
