"""A language of syllables: a task on which a model of two layers can follow a scaffold, made within a minute.

A prompt is a topic and a number, such as `fox 42`. A good answer says the syllables that belong to the topic; nothing in
the prompt tells which. The model is first taught two habits, on syllables drawn at random and never on the task: it says
what a scaffold asks for, and without one it says syllables by Zipf's law. So some of a topic's syllables are said often,
and others hardly ever: those have to be found. Held-out prompts have the topics of training and other numbers.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec

SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
TOPICS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
_TRAINED, _HELD_OUT = 6, 4
_SAID = 4
_TEACHING_STEPS, _TEACHING_ROWS, _TEACHING_LR = 600, 32, 3e-3


def examples(wanted: int, seed: int = 5) -> list[Example]:
    """For each topic six prompts to train on and four held out; `wanted` syllables make a perfect answer."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    rows = []
    for topic in TOPICS:
        rubric = Rubric(criteria=tuple(_criterion(text) for text in chooser.sample(SYLLABLES, wanted)))
        numbers = chooser.sample(range(10, 100), _TRAINED + _HELD_OUT)
        for place, number in enumerate(numbers):
            prompt = (Message(role="user", content=f"{topic} {number}"),)
            split: Any = "train" if place < _TRAINED else "heldout"
            rows.append(Example(key=f"{topic}-{number}", prompt=prompt, split=split, rubric=rubric))
    return rows


def make_model(directory: Path, progress: Callable[[int, int], None] = lambda done, total: None, seed: int = 0) -> bool:
    """The tiny model with its two habits; False when it is there already."""
    if (directory / "config.json").is_file():
        return False
    import torch

    from trainer.claims.runs import no_bars
    from trainer.inference.models import complete_or_absent, load_model, load_tokenizer, make_tiny

    no_bars()
    torch.set_num_threads(1)  # a second one only waits: the model is that small
    plain = directory.with_name(f"{directory.name}-untaught")
    make_tiny(plain, seed)
    tokenizer, model = load_tokenizer(plain), load_model(plain)
    optimizer = torch.optim.AdamW(model.parameters(), _TEACHING_LR, weight_decay=0.0)
    lessons = _lessons(random.Random(seed))  # noqa: S311 - as above
    for step in range(_TEACHING_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = _TEACHING_LR * min(1.0, (step + 1) / 50) * max(0.02, 1.0 - step / _TEACHING_STEPS)
        optimizer.zero_grad()
        _loss(model, tokenizer, [next(lessons) for _ in range(_TEACHING_ROWS)]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress(step + 1, _TEACHING_STEPS)
    with complete_or_absent(directory) as target:
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return True


def _criterion(syllable: str) -> Criterion:
    verifier = VerifierSpec(name="must_contain", args={"texts": [syllable], "match": "any", "whole_word": True})
    return Criterion(id=syllable, text=syllable, points=1.0, verifier=verifier)


def _lessons(chooser: random.Random) -> Iterator[tuple[tuple[Message, ...], str]]:
    """Conversations with an answer: the scaffold's syllables in its order, filled up by Zipf's law."""
    from trainer.inference.chat import with_addition
    from trainer.sampling import scaffold_text

    ranked = chooser.sample(SYLLABLES, len(SYLLABLES))
    weights = [1.0 / rank for rank in range(1, len(ranked) + 1)]
    while True:
        shown = chooser.sample(SYLLABLES, chooser.choice((0, 0, 1, 2, 3, 4, 4)))
        messages = (Message(role="user", content=f"{chooser.choice(TOPICS)} {chooser.randrange(100)}"),)
        if shown:
            messages = with_addition(messages, scaffold_text([_criterion(text) for text in shown]))
        said = list(shown)
        while len(said) < _SAID:
            (syllable,) = chooser.choices(ranked, weights)
            if syllable not in said:
                said.append(syllable)
        yield messages, " ".join(said)


def _loss(model: Any, tokenizer: Any, rows: list[tuple[tuple[Message, ...], str]]) -> Any:
    """Mean negative log-probability of the answers' tokens."""
    import torch

    from trainer.inference.chat import encode_prompt

    prompts = [encode_prompt(tokenizer, messages) for messages, _ in rows]
    answers = [tuple(tokenizer(text)["input_ids"]) + (tokenizer.eos_token_id,) for _, text in rows]
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    tokens = torch.full((len(rows), width), tokenizer.pad_token_id)
    labels = torch.full((len(rows), width), -100)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer)
        tokens[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    mask = (tokens != tokenizer.pad_token_id).long()
    return model(input_ids=tokens, attention_mask=mask, labels=labels).loss
