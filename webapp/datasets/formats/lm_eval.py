"""Logs of the Language Model Evaluation Harness (`--log_samples`): one line for each document and filter, with the request and the
response. The file of results beside them names the model."""

import json
import re
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Beside, Importer
from .convert import Convert, Mapping
from .fields import UNSAID, remaining_fields

SAMPLE = {"doc_id", "doc", "target", "arguments", "resps"}
USED = {*SAMPLE, "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
STAMP = re.compile(r"_\d{4}-\d\d-\d\dT[\d.:-]+$")
NUMBERS = (bool, int, float)


def knows(row: Row) -> float:
    return 0.97 if row.keys() >= SAMPLE or aside(row) else 0.0


def aside(row: Row) -> bool:
    """The file of results: numbers of whole tasks, without a document."""
    return isinstance(row.get("results"), dict) and isinstance(row.get("configs"), dict) and "samples" not in row


def bind(beside: Beside) -> Convert:
    task = STAMP.sub(
        "", PurePosixPath(beside.name).name.removesuffix(".gz").removesuffix(".jsonl").removeprefix("samples_")
    )
    model: list[str] = []

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        if aside(row):
            raise BadRow(
                "doc",
                "this file holds numbers of whole tasks; import the files samples_….jsonl, which lm-eval writes with --log_samples",
            )
        if not model:
            model.append(_model(beside))
        return _example(row, task, model[0])

    return convert


def _model(beside: Beside) -> str:
    for name in beside.names:
        if name.startswith("results"):
            for row in beside.rows(name):
                return str(row.get("model_name") or "") if aside(row) else ""
    return ""


def _example(row: Row, task: str, model: str) -> dict[str, Any]:
    asked = _arguments(row.get("arguments"))
    prompts = list(dict.fromkeys(text for text, _ in asked))
    unsaid = ["prompts beside the first: the document asks several"] if len(prompts) > 1 else []
    filter_name = str(row.get("filter") or "none")
    data: dict[str, Any] = {
        "key": f"{task}/{row['doc_id']}" + (f"/{filter_name}" if filter_name != "none" else ""),
        "group": f"{task}/{row['doc_id']}",
        "prompt": _prompt(prompts[0]),
        "source": f"lm-eval: {task}",
        "domain": task,
        "meta": {
            "doc": row["doc"],
            "scores": {name: row[name] for name in row.get("metrics") or [] if isinstance(row.get(name), NUMBERS)},
        },
    }
    if row.get("target") is not None:
        data["reference"] = str(row["target"])
    if others := [name for name in row.get("metrics") or [] if name not in data["meta"]["scores"]]:
        unsaid.append(f"metrics that are not a number for one document: {', '.join(map(str, others))}")
    choices = [more for _, more in asked if isinstance(more, str)]
    if len(choices) == len(asked):
        _choices(row, data, choices)
    elif all(more is None for _, more in asked):  # the text was weighed as a whole, and nothing was answered
        data["meta"]["loglikelihoods"] = {"prompt": _first(row.get("filtered_resps") or row["resps"])}
    else:
        _generated(row, data, model, [more for _, more in asked if isinstance(more, dict)])
    return data | {
        "meta": data["meta"]
        | ({UNSAID: unsaid} if unsaid else {})
        | remaining_fields(row, USED | set(data["meta"]["scores"]))
    }


def _arguments(value: Any) -> list[tuple[str, Any]]:
    """(context, continuation or how to sample) of each request: as an object by name, or as a list, as older versions wrote it."""
    given = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(given, list) or not given:
        raise BadRow("arguments", "must hold what was asked")
    found = []
    for each in given:
        parts = [each.get("arg_0"), each.get("arg_1")] if isinstance(each, dict) else each
        if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
            raise BadRow("arguments", "must hold a text first in each request")
        found.append((parts[0], parts[1] if len(parts) > 1 else None))
    return found


def _prompt(text: str) -> list[dict[str, str]]:
    """The prompt. A chat template leaves the messages as JSON; otherwise one text is the prompt."""
    if text.startswith('[{"role"'):
        try:
            found = json.loads(text)
            if all(isinstance(each, dict) and isinstance(each.get("content"), str) for each in found):
                return [{"role": str(each.get("role")), "content": each["content"]} for each in found]
        except (ValueError, RecursionError):
            pass
    if not text:
        raise BadRow("arguments", "asks with an empty text")
    return [{"role": "user", "content": text}]


def _choices(row: Row, data: dict[str, Any], choices: list[str]) -> None:
    """Continuations that were compared, with their log-likelihoods."""
    data["responses"] = [
        {"id": f"r{number}", "text": text, "origin": "choice"} for number, text in enumerate(choices, 1)
    ]
    weighed = row.get("filtered_resps") or row["resps"]
    scores = [_first(each) for each in weighed] if isinstance(weighed, list) else []
    if len(scores) == len(choices) and all(isinstance(each, float | int) for each in scores):
        # the logarithm of 0 is infinite, which JSON cannot say
        known = [float(each) if isfinite(each) else None for each in scores]
        data["meta"]["loglikelihoods"] = {f"r{number}": each for number, each in enumerate(known, 1)}


def _first(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value


def _generated(row: Row, data: dict[str, Any], model: str, how: list[Row]) -> None:
    texts = list(_texts(row["resps"]))
    data["responses"] = [{"id": f"r{number}", "text": text, "origin": model} for number, text in enumerate(texts, 1)]
    filtered = [each for each in _texts(row.get("filtered_resps")) if each not in texts]
    data["meta"] |= ({"filtered": filtered} if filtered else {}) | ({"sampling": how[0]} if how else {})


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


IMPORTER = Importer(
    name="lm_eval",
    label="LM Evaluation Harness",
    help="samples_….jsonl as lm-eval writes them with --log_samples; results_….json beside them names the model.",
    knows=knows,
    bind=bind,
    aside=aside,
    unsaid=True,
)
