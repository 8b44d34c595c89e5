"""Shared parts of recipes whose models answer a dataset's prompts: the settings of sampling, who answered what."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Literal

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.config.sections.sampler import Sampler
from trainer.contracts import Example
from trainer.rubrics import verdicts as verified

from ... import report as r
from ..base import Context, FoundCase, NothingToScore, RecipeConfig, Writer, WrittenText, tag
from .policy import ScoredAnswer

NOBODY = "no response"


class SampledConfig(RecipeConfig):
    """Models that answer the same prompts, sampled in the same way."""

    tried: ClassVar[tuple[str, ...]] = ("writers",)
    spared: ClassVar[tuple[str, ...]] = (*RecipeConfig.spared, "sampler")

    writers: list[Writer] = knob([Writer()], "Models that answer, side by side", min_length=1, max_length=8)
    samples: int = knob(1, "Responses to each prompt", ge=1, le=64)
    max_new_tokens: int = knob(256, "Longest response", unit="tokens", ge=1, le=32_768)
    temperature: float = knob(0.7, "0 always takes the most likely token", ge=0, le=2)
    top_p: float = knob(1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response; models of the registry only", max_length=8, advanced=True)
    seed: int = knob(0, "Seed of sampling; with another seed, endpoints are asked again", ge=0, lt=2**31)
    split: Literal["heldout", "train", ""] = knob("heldout", "Split of the dataset; none: all prompts")
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)
    judge: int | None = knob(None, "Decides criteria without a verifier", source="judges:criterion,checklist")
    threshold: float = knob(
        1.0, "A response is a success, for pass@k, if its clipped score is at least this", gt=0, le=1
    )
    sampler: Sampler = Sampler()

    def problems(self) -> Iterator[FieldProblem]:
        seen: dict[str, set[object]] = {"name": set(), "model": set(), "endpoint": set()}
        for i, each in enumerate(self.writers):
            if (each.model is None) == (each.endpoint is None):
                yield FieldProblem(f"writers.{i}.model", "choose either a model or an endpoint")
            for field, known in seen.items():
                value = getattr(each, field)
                if value and value in known:
                    yield FieldProblem(f"writers.{i}.{field}", "is listed twice")
                known.add(value)
        if self.stop and any(each.endpoint is not None for each in self.writers):
            yield FieldProblem(
                "stop", "endpoints cannot be given texts to stop at; leave this empty, or choose only models"
            )
        yield from self.sampler.problems(adapters=False, runner="sync")


def prompts(context: Context) -> list[Example]:
    """The prompts to ask about, in the dataset's order. Raises NothingToScore if there is none."""
    config = context.config
    listed = (example for example in context.examples() if not config.split or example.split == config.split)
    found = list(islice(listed, config.max_prompts))
    if not found:
        raise NothingToScore("The dataset has no prompt on this side of the split.")
    return found


def names_of(context: Context, writers: Sequence[Writer]) -> list[str]:
    names: list[str] = []
    for each in writers:
        name = each.name or context.writer_name(each)
        names.append(name if name not in names else f"{name} ({'model' if each.endpoint is None else 'endpoint'})")
    return names


def response_id(writer: Writer, sample: int) -> str:
    return f"m{writer.model}-{sample}" if writer.endpoint is None else f"e{writer.endpoint}-{sample}"


def split_responses(
    names: list[str], writers: list[Writer], found: dict[str, list[WrittenText]], prompts: Sequence[Example]
) -> tuple[list[ScoredAnswer], list[FoundCase]]:
    """The responses, and cases for missing ones. Raises NothingToScore for a model that has answered nothing."""
    known = {example.key: example for example in prompts}
    answered: list[ScoredAnswer] = []
    unanswered: list[FoundCase] = []
    for name, writer in zip(names, writers, strict=True):
        mine = [_answered(name, writer, each, known[each.example]) for each in found[name] if not each.problem]
        lost = [_unanswered(name, each, known[each.example]) for each in found[name] if each.problem]
        if not mine:
            raise NothingToScore(
                f"{name} has answered no prompt: {lost[0].values['problem'] if lost else 'it was asked about none'}"
            )
        answered += mine
        unanswered += lost
    return answered, unanswered


def _answered(name: str, writer: Writer, said: WrittenText, example: Example) -> ScoredAnswer:
    verdicts = list(verified(example.rubric, said.text)) if example.rubric else []
    mine = response_id(writer, said.sample)
    each = ScoredAnswer(name, example.key, mine, said.text, example.prompt, example, example.rubric, verdicts)
    each.tokens, each.response, each.brought = said.tokens, mine, True
    return each


def _unanswered(name: str, said: WrittenText, example: Example) -> FoundCase:
    tags = [tag("model", name), tag("example", example.key), NOBODY]
    return FoundCase(
        {"model": name, "example": example.key}, {"problem": said.problem, "prompt": example.prompt[-1].content}, tags
    )


def ends(names: Sequence[str], found: Mapping[str, Sequence[WrittenText]]) -> r.Table:
    """A table of the ways in which responses ended."""
    rows = []
    for name in names:
        ends = [each.finish_reason for each in found[name] if not each.problem]
        lost = sum(bool(each.problem) for each in found[name])
        rows.append(
            [
                r.text(name, tag("model", name)),
                r.count(lost, tag("model", name), NOBODY, tone="warn" if lost else ""),
                r.number(sum(each == "length" for each in ends), "count"),
            ]
        )
    columns = [("Model", ""), ("Without a response", ""), ("Cut at the longest", "they would have gone on")]
    return r.Table("Outcome of the prompts", columns, rows)
