"""Whether an answer fits its task. Answers arrive in the shown frame; every complaint names a path below `content` and
says in a sentence what to do."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from trainer.rewards.verifiers import VerifierError, check_spec
from webapp.core.problems import Invalid

from . import kinds

Fields = dict[str, str]
REFUSED = "The answer is not complete yet."
WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a part of this answer",
    "string_too_long": "has more than {max_length:,} characters",
    "string_too_short": "must not be empty",
    "too_long": "holds more than {max_length:,} entries",
    "too_short": "must not be empty",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
}


def answer(
    kind: str, settings: kinds.Settings, content: object, view: Mapping[str, Any], *, gold: bool = False
) -> dict[str, Any]:
    """The answer as its record has it, as JSON, defaults included. `view` is what the person saw (`shown.view`).

    Raises Invalid at `content.*`. `gold`: a known answer gives no reasons, so they are not asked for.
    """
    try:
        record = kinds.ANSWERS[kind].model_validate(content)
    except ValidationError as error:
        raise Invalid(REFUSED, complaints(error)) from error
    fields = {f"content.{path}": message for path, message in _CHECKS[kind](record, settings, view, gold).items()}
    if fields:
        raise Invalid(REFUSED, fields)
    return _completed(kind, record.model_dump(mode="json"), view)


def complaints(error: ValidationError) -> Fields:
    """{path: sentence} of all that pydantic found."""
    return dict(_complaint(one) for one in error.errors())


def _complaint(error: Any) -> tuple[str, str]:
    path = ".".join(["content", *(str(part) for part in error["loc"])])
    words = WORDS.get(error["type"])
    if error["type"] == "value_error":
        # a rule over several fields: said at the field to change, where there is one
        message = str(error["ctx"]["error"])
        return (f"{path}.strength" if "steps" in message or "no strength" in message else path), message
    return path, words.format(**error.get("ctx", {})) if words else error["msg"]


def _completed(kind: str, content: dict[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "rationale" and view["rationale"] is not None:
        content["source"] = view["rationale"]  # the text that was cut, not what a browser says it was
    return content


def _texts(view: Mapping[str, Any]) -> dict[str, str]:
    return {one["letter"]: one["text"] for one in view["responses"]}


def _reasons(record: Any, view: Mapping[str, Any]) -> Fields:
    texts, fields = _texts(view), {}
    for index, reason in enumerate(record.reasons):
        if not reason.text.strip():
            fields[f"reasons.{index}.text"] = "must not be empty"
        if reason.response is None:
            continue
        if reason.response not in texts:
            fields[f"reasons.{index}.response"] = f"names {reason.response!r}; shown are {', '.join(texts)}"
        elif reason.end is not None and reason.end > len(texts[reason.response]):
            fields[f"reasons.{index}.end"] = _beyond(texts[reason.response])
    return fields


def _beyond(text: str) -> str:
    return f"lies beyond the end of the response, which has {len(text):,} characters"


def _pairwise(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    fields = _reasons(record, view)
    fields |= {f"dimensions.{n}": "is not asked for here" for n in record.dimensions if n not in settings.dimensions}
    if settings.reasons == "none" and record.reasons:
        fields["reasons"] = "are not asked for in this project"
    if settings.reasons == "required" and record.verdict == "compared" and not record.reasons and not gold:
        fields["reasons"] = "are required: give at least one"
    return fields


def _rubric(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    fields = {}
    for index, criterion in enumerate(record.rubric.criteria):
        if not criterion.text.strip():
            fields[f"rubric.criteria.{index}.text"] = "must not be empty"
        if criterion.verifier is not None:
            try:
                check_spec(criterion.verifier)
            except VerifierError as error:
                fields[f"rubric.criteria.{index}.verifier.{error.field}"] = error.message
    return fields


def _grading(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    wanted = [one["id"] for one in view["criteria"]]
    text = view["responses"][0]["text"]
    fields, seen = {}, set()
    for index, grade in enumerate(record.grades):
        if grade.criterion not in wanted:
            fields[f"grades.{index}.criterion"] = f"names {grade.criterion!r}, which is not in the rubric"
        elif grade.criterion in seen:
            fields[f"grades.{index}.criterion"] = "is graded twice"
        seen.add(grade.criterion)
        if (grade.start is None) != (grade.end is None) or (grade.end is not None and grade.end <= grade.start):
            fields[f"grades.{index}.end"] = "a span needs start < end"
        elif grade.end is not None and grade.end > len(text):
            fields[f"grades.{index}.end"] = _beyond(text)
    if missing := [str(number) for number, name in enumerate(wanted, 1) if name not in seen]:
        fields["grades"] = f"every criterion needs a verdict; missing: {', '.join(missing)}"
    return fields


def _ranking(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    if record.verdict == "cannot_assess":
        return {"tiers": "must be empty where the responses cannot be assessed"} if record.tiers else {}
    shown_letters = [one["letter"] for one in view["responses"]]
    ranked = [letter for tier in record.tiers for letter in tier]
    if unknown := sorted(set(ranked) - set(shown_letters)):
        return {"tiers": f"names {', '.join(unknown)}, which is not shown"}
    if twice := sorted({letter for letter in ranked if ranked.count(letter) > 1}):
        return {"tiers": f"{', '.join(twice)} stands in two places"}
    if missing := [letter for letter in shown_letters if letter not in ranked]:
        return {"tiers": f"every response needs a place; missing: {', '.join(missing)}"}
    if any(not tier for tier in record.tiers):
        return {"tiers": "a place must hold at least one response"}
    if settings.ranking == "best" and (len(record.tiers) != 2 or len(record.tiers[0]) != 1):
        return {"tiers": "choose the one best response"}
    return {}


def _rating(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    scales = {scale.name: scale for scale in settings.scales}
    fields = {f"ratings.{name}": "is not asked for here" for name in record.ratings if name not in scales}
    for name, scale in scales.items():
        value = record.ratings.get(name)
        if name not in record.ratings:
            fields[f"ratings.{name}"] = "needs a value, or `cannot assess`"
        elif value is not None and not scale.low <= value <= scale.high:
            fields[f"ratings.{name}"] = f"must be between {scale.low} and {scale.high}"
    return fields


def _rationale(record: Any, settings: kinds.Settings, view: Mapping[str, Any], gold: bool) -> Fields:
    fields = _reasons(record, view)
    if view["rationale"] is None and not record.source.strip() and not gold:
        fields["source"] = "write the rationale that the reasons come from"
    return fields


_CHECKS = {
    "pairwise": _pairwise,
    "rubric": _rubric,
    "grading": _grading,
    "ranking": _ranking,
    "rating": _rating,
    "rationale": _rationale,
}
