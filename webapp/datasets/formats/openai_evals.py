"""OpenAI's evals: rows of their data sources with graders beside them, the output of their runs, and files of the open source package
`evals`.

Graders lie in another file of the same archive: an eval as the API gives it, or a grader of a fine-tuning job. Parts of them that cannot be
a criterion here are in `meta.unsaid` of each example, and the import counts them.
"""

from typing import Any

from webapp.files.records import BadRow, Row, RowProblem

from . import openai_graders as graders
from .base_importer import Beside, Importer, NumberedRows
from .convert import Convert, Mapping
from .fields import UNSAID, content_key, messages, remaining_fields, text_of

ITEM = "eval.run.output_item"
FILES = ("eval.json", "graders.json", "grader.json")
PROMPTS = ("messages", "input", "prompt", "question", "query", "instruction", "user_prompt")
TRUTHS = (
    *("reference_answer", "ideal", "correct_label", "ground_truth", "expected", "expected_output", "correct_answer"),
    *("answer", "target", "reference", "label"),
)
ROLES = {"developer": "system", "function": "tool"}
KNOWN = ("system", "user", "assistant", "tool")
OPEN = 1_000  # samples of a log whose events may come between one another's


def knows(row: Row) -> float:
    if row.get("object") == ITEM or (isinstance(row.get("item"), dict) and row.keys() <= {"item", "sample", "id"}):
        return 0.97
    if row.get("object") == "list" and isinstance(row.get("data"), list):
        return 0.9 if any(isinstance(each, dict) and each.get("object") == ITEM for each in row["data"]) else 0.0
    if (
        _is_event(row)
        or "final_report" in row
        or (isinstance(row.get("spec"), dict) and "completion_fns" in row["spec"])
    ):
        return 0.97
    if graders.found(row) or _template(row):
        return 0.97
    return 0.9 if row.keys() >= {"input", "ideal"} else 0.0


def _is_event(row: Row) -> bool:
    return row.keys() >= {"run_id", "event_id", "type", "data"}


def aside(row: Row) -> bool:
    return bool(graders.found(row) or _template(row)) and not isinstance(row.get("item"), dict)


def _template(row: Row) -> list[Row]:
    """The messages that a run sends for each item, with placeholders for its values."""
    source = row.get("data_source")
    asked = source.get("input_messages") if isinstance(source, dict) else None
    found = asked.get("template") if isinstance(asked, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def merge(rows: NumberedRows) -> NumberedRows:
    """A page of run outputs as its items; the events of a log as one row for each sample."""
    samples: dict[str, tuple[int, Row]] = {}
    for line, row in rows:
        if isinstance(row, RowProblem):
            yield line, row
        elif row.get("object") == "list" and isinstance(row.get("data"), list):
            yield from ((line, each if isinstance(each, dict) else {}) for each in row["data"])
        elif _is_event(row):
            yield from _gathered(samples, line, row)
        elif "final_report" not in row and "spec" not in row:
            yield line, row
    yield from samples.values()


def _gathered(samples: dict[str, tuple[int, Row]], line: int, event: Row) -> NumberedRows:
    """Adds an event to its sample; yields the oldest sample if too many are open."""
    name = event.get("sample_id")
    if not isinstance(name, str):  # of the whole log
        return
    if name not in samples:
        if len(samples) >= OPEN:
            yield samples.pop(next(iter(samples)))
        samples[name] = (line, {"sample_id": name, "run_id": event.get("run_id"), "events": []})
    samples[name][1]["events"].append({"type": event["type"], "data": event["data"]})


def bind(beside: Beside) -> Convert:
    """The converter of one file; it reads the graders beside it when a row first needs them."""
    defined: list[tuple[list[Row], list[Row]]] = []

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        if aside(row):
            raise BadRow(
                "item", "this file holds graders and no rows; put it into one zip archive with the rows of its eval"
            )
        if "events" in row and "sample_id" in row:
            return _of_log(row)
        if not defined:
            defined.append(_defined(beside))
        return _of_item(row, *defined[0])

    return convert


def _defined(beside: Beside) -> tuple[list[Row], list[Row]]:
    """(graders, template of the run) of the files beside."""
    found: tuple[list[Row], list[Row]] = ([], [])
    for name in beside.names or FILES:
        for row in beside.rows(name):
            if aside(row):
                found[0].extend(each for each in graders.found(row) if each not in found[0])
                found[1].extend([] if found[1] else _template(row))
    return found


def _of_item(row: Row, known: list[Row], template: list[Row]) -> dict[str, Any]:
    item = row.get("datasource_item", row.get("item", row))
    if not isinstance(item, dict):
        raise BadRow("item", "must be an object with the values of one item")
    sample = row["sample"] if isinstance(row.get("sample"), dict) else {}
    graded = graders.graded(known, item)
    prompt, unsaid = _prompt(item, sample, template)
    reference, used = _reference(item)
    about = {name: row[name] for name in ("run_id", "eval_id", "status", "results") if row.get(name) is not None}
    data: dict[str, Any] = {
        "key": _key(row, item, prompt),
        "prompt": prompt,
        "source": "OpenAI Evals",
        "reference": graded.reference or reference,
        "meta": {"item": remaining_fields(item, used)} | about,
    }
    if graded.criteria:
        data["rubric"] = {"criteria": graded.criteria}
    elif row.get("results") and not known:
        unsaid.append("the graders of the run: its output only says what they gave (meta.results)")
    unsaid += _answer(sample, data)
    return _told(data, [*graded.unsaid, *unsaid])


def _told(data: dict[str, Any], unsaid: list[str]) -> dict[str, Any]:
    if unsaid:
        data["meta"][UNSAID] = list(dict.fromkeys(unsaid))
    return data


def _key(row: Row, item: Row, prompt: list[Row]) -> str:
    if row.get("object") == ITEM:
        return text_of(row, "id")
    named = row.get("id", item.get("id"))
    return str(named) if isinstance(named, str | int) and named != "" else content_key(prompt, item)


def _prompt(item: Row, sample: Row, template: list[Row]) -> tuple[list[Row], list[str]]:
    """The prompt that the model got, or would get: from the sample, from the run's template, or from the item."""
    if isinstance(sample.get("input"), list) and sample["input"]:
        return _messages(sample["input"], "sample.input")
    if template:
        try:
            asked = [
                each | {"content": graders.filled(graders.content_text(each.get("content")), item)} for each in template
            ]
        except graders.Unfilled as missing:
            raise BadRow("item", f"has no {missing}, which the run's messages ask for") from missing
        return _messages(asked, "template")
    name = next((name for name in PROMPTS if item.get(name)), None)
    if name is None:
        raise BadRow("item", f"names no prompt: it has none of {', '.join(PROMPTS)}; or import it as a table")
    if isinstance(item[name], list):
        return _messages(item[name], f"item.{name}")
    return messages(item[name], f"item.{name}"), []


def _messages(value: list[Any], field: str) -> tuple[list[Row], list[str]]:
    """Messages of the API as ours, and the parts of them that are not text."""
    unsaid: list[str] = []
    made = []
    for index, each in enumerate(value):
        if not isinstance(each, dict):
            raise BadRow(f"{field}.{index}", "must be a message with role and content")
        role = ROLES.get(str(each.get("role")), each.get("role"))
        if role not in KNOWN:
            raise BadRow(f"{field}.{index}.role", f"must be one of {', '.join(KNOWN)}; found {role!r}")
        content = each.get("content")
        if isinstance(content, list) and any(isinstance(part, dict) and "text" not in part for part in content):
            unsaid.append("parts of messages that are not text, such as images")
        if each.get("tool_calls") or each.get("function_call"):
            unsaid.append("calls of tools within the prompt")
        made.append({"role": role, "content": graders.content_text(content)})
    if not made:
        raise BadRow(field, "is empty")
    return made, unsaid


def _reference(item: Row) -> tuple[str | None, set[str]]:
    """The right answer, if the item names one, and the field in which it was found."""
    for name in TRUTHS:
        value = item.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return value, {name}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value), {name}
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return value[0], set()  # all of them stay in meta
    return None, set()


def _answer(sample: Row, data: dict[str, Any]) -> list[str]:
    """Adds the sampled responses; returns the parts that an example cannot hold."""
    unsaid = []
    text = sample.get("output_text")
    output = [each for each in sample.get("output") or [] if isinstance(each, dict)]
    if not isinstance(text, str) and output:
        text = graders.content_text(output[-1].get("content"))
        if len(output) > 1:
            unsaid.append("messages of the output before its last")
    if any(each.get("tool_calls") or each.get("function_call") for each in output) or sample.get("output_tools"):
        unsaid.append("calls of tools in the output")
    if isinstance(text, str) and not sample.get("error"):
        data["responses"] = [{"id": "r1", "text": text, "origin": str(sample.get("model") or "")}]
    elif sample.get("error"):
        unsaid.append("a response: sampling it failed (meta.sample.error)")
    kept = remaining_fields(sample, {"input", "output", "output_text", "model"})
    if kept:
        data["meta"]["sample"] = kept
    return unsaid


def _of_log(row: Row) -> dict[str, Any]:
    """A sample of a log of the package `evals`."""
    events = [each for each in row["events"] if isinstance(each["data"], dict)]
    sampled = [each["data"] for each in events if each["type"] == "sampling" and each["data"].get("prompt")]
    if not sampled:
        raise BadRow("type", f"sample {row['sample_id']} has no event of sampling, so its prompt is not known")
    last = sampled[-1]
    prompt, unsaid = (
        _messages(last["prompt"], "prompt")
        if isinstance(last["prompt"], list)
        else (messages(last["prompt"], "prompt"), [])
    )
    texts = last.get("sampled") if isinstance(last.get("sampled"), list) else [last.get("sampled")]
    if len(sampled) > 1:
        unsaid.append("answers of a sample before its last, such as those that its own grading asked for")
    matches = [each["data"] for each in events if each["type"] == "match"]
    others = sorted({str(each["type"]) for each in events} - {"sampling", "match", "metrics", "raw_sample"})
    unsaid += [f"events of the kind {kind}" for kind in others]
    data: dict[str, Any] = {
        "key": f"{row.get('run_id') or ''}/{row['sample_id']}".strip("/"),
        "prompt": prompt,
        "source": "OpenAI Evals",
        "responses": [{"id": f"r{n}", "text": each} for n, each in enumerate(texts, 1) if isinstance(each, str)],
        "meta": {"matches": matches} if matches else {},
    }
    expected = matches[-1].get("expected") if matches else None
    if isinstance(expected, str):
        data["reference"] = expected
    return _told(data, unsaid)


IMPORTER = Importer(
    name="openai_evals",
    label="OpenAI Evals",
    help="Rows with item, outputs of runs, or logs of the package evals; graders from another file of the same archive.",
    knows=knows,
    bind=bind,
    aside=aside,
    merge=merge,
    unsaid=True,
)
