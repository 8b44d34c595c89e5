"""An input becomes calls, each with a key made of its content; a reply becomes a parsed answer or a problem."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .answers import AnswerSchema, Reading, extract, schema
from .base import BaseSpec
from .chat import ChatRequest
from .inputs import JudgeInput
from .spec import kind_of
from .templates import canonical, render, scrub

_QUOTED = 4_000  # characters of an unusable answer that are shown to the judge again


@dataclass(frozen=True)
class Call:
    """`key` is made of the content; `subject` says what the call is about: example, response, criterion, order, sample.

    `record` is the request as canonical JSON, in the form that is hashed and stored.
    """

    key: str
    request: ChatRequest
    subject: dict[str, Any]
    record: str


def expand(spec: BaseSpec, version: str, given: JudgeInput, draw: int = 0) -> list[Call]:
    """All calls for one input: one for each criterion, order and vote of the kind. Calls with a common prefix come together.

    `version` is the judge version's digest. Another `draw` asks for other samples of the same questions.
    Raises InputProblem if the input lacks what the kind needs.
    """
    return list(_calls(spec, version, given, draw))


def _calls(spec: BaseSpec, version: str, given: JudgeInput, draw: int) -> Iterator[Call]:
    kind = kind_of(spec)
    answer = kind.answer(spec)
    wanted = None if answer is None else _schema(answer)
    shape = kind.answer_format(spec)
    sampling = canonical(spec.sampling.model_dump(mode="json"))
    for asked in kind.ask(spec, given):
        values = {**asked.values, "answer_format": shape}
        messages = [{"role": "user", "content": render(spec.prompt, values)}]
        if spec.system:
            messages.insert(0, {"role": "system", "content": render(spec.system, values)})
        for sample in range(draw * spec.votes, (draw + 1) * spec.votes):
            seed = None if spec.sampling.seed is None else spec.sampling.seed + sample
            request = ChatRequest(tuple(messages), spec.sampling, wanted, seed)
            record = _record(request, sampling)
            subject = {**asked.subject, "sample": sample} if spec.votes > 1 or draw else asked.subject
            yield Call(key_of(version, record, sample), request, subject, record)


def key_of(version: str, record: str, sample: int) -> str:
    """SHA-256, hexadecimal, over the judge version's digest, the request and the number of the sample."""
    return hashlib.sha256(f"{version}\n{sample}\n{record}".encode()).hexdigest()


def sample_keys(version: str, stored: Mapping[str, Any], count: int) -> list[str]:
    """The keys of the samples 0 to `count` - 1 of a question whose request was stored, whether they were called or not."""
    base = stored["sampling"].get("seed")
    records = (canonical({**stored, "seed": None if base is None else base + sample}) for sample in range(count))
    return [key_of(version, record, sample) for sample, record in enumerate(records)]


def read(spec: BaseSpec, subject: Mapping[str, Any], raw: str, *, complete: bool = True) -> Reading:
    """Reads the raw answer. No text raises: an answer that cannot be read is a problem, and so missing.

    If `complete` is False, the answer was cut; it counts only if its JSON is whole.
    """
    kind = kind_of(spec)
    form = kind.answer(spec)
    if form is None:
        return kind.read_text(spec, scrub(raw), complete)
    answer, problem = extract(raw, form, complete=complete)
    return Reading(None, problem) if answer is None else kind.read(spec, subject, answer)


def again(request: ChatRequest, raw: str, problem: str) -> ChatRequest:
    """The request again, with the answer that could not be used and the reason."""
    only = "with the JSON object only" if request.schema else "in the form that was asked for and with nothing else"
    told = f"That answer cannot be used: {problem}. Answer the question above again, {only}."
    turns = ({"role": "assistant", "content": raw[:_QUOTED]}, {"role": "user", "content": told})
    return replace(request, messages=(*request.messages, *turns))


@lru_cache
def _schema(answer: type[AnswerSchema]) -> dict[str, Any]:
    return schema(answer)


def _record(request: ChatRequest, sampling: str) -> str:
    """The request as canonical JSON. The answer's schema is left out: the version's spec determines it."""
    return f'{{"messages":{request.encoded},"sampling":{sampling},"seed":{canonical(request.seed)}}}'
