"""A small model that is taught habits by examples of what to say, before any run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.contracts import Message

Lesson = tuple[tuple[Message, ...], str]
"""A conversation, and the answer to it."""
Progress = Callable[[int, int], None]
"""(steps done, steps in all)."""


def silent(done: int, total: int) -> None:
    """Reports nothing."""


@dataclass(frozen=True)
class Course:
    """A course of lessons. `pieces` are texts that are one token each, so that texts made of them are short."""

    lessons: Iterator[Lesson]
    pieces: Sequence[str] = ()
    steps: int = 600
    rows: int = 32
    lr: float = 3e-3


def teach(directory: Path, course: Course, progress: Progress = silent, seed: int = 0) -> bool:
    """Make the tiny model with the habits of the course; False if it is there already."""
    if (directory / "config.json").is_file():
        return False
    import torch

    from trainer.claims.runs import no_bars
    from trainer.inference.models import complete_or_absent, load_model, load_tokenizer, make_tiny

    no_bars()
    torch.set_num_threads(1)  # a second thread would only wait, because the model is so small
    plain = directory.with_name(f"{directory.name}-untaught")
    make_tiny(plain, seed)
    tokenizer, model = load_tokenizer(plain), load_model(plain)
    if course.pieces:
        tokenizer.add_tokens(list(course.pieces))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    _learn(model, tokenizer, course, progress)
    with complete_or_absent(directory) as target:
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return True


def _learn(model: Any, tokenizer: Any, course: Course, progress: Progress) -> None:
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), course.lr, weight_decay=0.0)
    for step in range(course.steps):
        for group in optimizer.param_groups:
            group["lr"] = course.lr * min(1.0, (step + 1) / 50) * max(0.02, 1.0 - step / course.steps)
        optimizer.zero_grad()
        _loss(model, tokenizer, [next(course.lessons) for _ in range(course.rows)]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress(step + 1, course.steps)


def _loss(model: Any, tokenizer: Any, rows: list[Lesson]) -> Any:
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
