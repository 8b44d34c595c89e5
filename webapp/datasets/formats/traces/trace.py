"""A trace while it is read: the messages before the agent's first step are the prompt, and everything from there on is a step.

If an example has no place for a part (an image, a sound, thoughts that were kept secret), the part is named in brackets in its place and
counted in `meta.not_imported`, and the example has the tag `parts missing`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from trainer.contracts import TraceStep
from trainer.contracts.trace import as_text
from webapp.files.records import BadRow, Row

from ..fields import content_key, labels, remaining_fields

PARTS_MISSING = "parts missing"
ROLES = {"developer": "system", "model": "assistant", "human": "user", "function": "tool"}
KNOWN_ROLES = ("system", "user", "assistant", "tool")


class AgentTrace:
    """Steps in their order. `lost` counts the parts that an example cannot hold, by their names."""

    def __init__(self) -> None:
        self.prompt: list[dict[str, str]] = []
        self.steps: list[TraceStep] = []
        self.lost: Counter[str] = Counter()
        self._tools: dict[str, str] = {}  # the names of the tools that were called, by the ids of the calls

    def say(self, role: str, text: str) -> None:
        """Adds a message. A message without text, as there are beside calls of tools, is left out."""
        if not text.strip():
            return
        if not self.steps and role != "assistant":
            self.prompt.append({"role": role, "content": text})
        else:
            self.steps.append(TraceStep.model_validate({"role": role, "text": text}))

    def think(self, text: str) -> None:
        if text.strip():
            self.steps.append(TraceStep(kind="reasoning", text=text))

    def call(self, tool: Any, arguments: Any, id: Any = None) -> None:
        name, given = _name(tool), _name(id)
        self._tools[given] = name
        self.steps.append(TraceStep(kind="call", tool=name, call=given, text=written(arguments)))

    def result(self, id: Any, text: str, tool: Any = None, failed: bool = False) -> None:
        """Adds the result of a tool. The tool's name is that of the call, if the trace has the call."""
        given = _name(id)
        name = _name(tool) or self._tools.get(given, "")
        self.steps.append(TraceStep(kind="result", role="tool", tool=name, call=given, text=text, failed=failed))

    def answer(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Puts results that came separately, {id of the call: arguments of `result`}, after their calls."""
        steps, self.steps = self.steps, []
        for step in steps:
            self.steps.append(step)
            if step.kind == "call" and step.call in results:
                self.result(step.call, **results[step.call])

    def lose(self, what: Any) -> str:
        """Counts a part that an example cannot hold, and returns the text in its place."""
        name = _name(what)[:80] or "part without a type"
        self.lost[name] += 1
        return f"[{name}: not imported]"

    def text(self, value: Any, field: str, texts: Mapping[str, str]) -> str:
        """Content as one text. `texts` names the field that holds the text in parts of each type. Raises BadRow."""
        if value is None or isinstance(value, str):
            return value or ""
        if not isinstance(value, list):
            raise BadRow(field, f"must be text or a list of parts, found {type(value).__name__}")
        said = [self._part(part, f"{field}.{index}", texts) for index, part in enumerate(value)]
        return "\n\n".join(text for text in said if text)

    def _part(self, part: Any, field: str, texts: Mapping[str, str]) -> str:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            raise BadRow(field, "must be text or an object with a type")
        text = part.get(texts.get(str(part.get("type")), ""))
        return text if isinstance(text, str) else self.lose(part.get("type"))

    def example(
        self, row: Row, used: set[str], *, field: str, model: Any = None, key: str = "", may_be_silent: bool = False
    ) -> dict[str, Any]:
        """The data of the example. Raises BadRow at `field` if there is no prompt, or nothing that an agent did. `may_be_silent`: then it
        has no response."""
        if not self.prompt:
            raise BadRow(field, "has no message before the agent's first step, so there is no prompt")
        acted = any(step.by_agent for step in self.steps)
        if not acted and not may_be_silent:
            raise BadRow(field, "has no step of an agent: no answer, no thought and no call of a tool")
        told, read = labels(row)
        steps = [step.model_dump(exclude_defaults=True) for step in self.steps]
        meta = remaining_fields(row, used | read)
        if self.lost:
            meta["not_imported"] = dict(self.lost)
        response = {"id": "r1", "text": as_text(self.steps), "steps": steps, "origin": _name(model)}
        return {
            "key": key or content_key(self.prompt, steps),
            "prompt": self.prompt,
            "responses": [response] if acted else [],
            "tags": [PARTS_MISSING] if self.lost else [],
            "meta": meta,
            **told,
        }


def _name(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def written(value: Any) -> str:
    """Arguments or a result as text; other values become JSON."""
    return value if isinstance(value, str) else "" if value is None else to_json(value).decode()


def role_of(message: Any, field: str) -> str:
    """The message's role by our names. Raises BadRow."""
    if not isinstance(message, dict):
        raise BadRow(field, "must be a message, an object with a role")
    role = ROLES.get(str(message.get("role")), message.get("role"))
    if role not in KNOWN_ROLES:
        found = "is missing" if role is None else f"must be one of {', '.join(KNOWN_ROLES)}, found {role!r}"
        raise BadRow(f"{field}.role", found)
    return str(role)


def listed(value: Any, field: str) -> list[Any]:
    """The list; [] if it is missing. Raises BadRow for another value."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRow(field, f"must be a list, found {type(value).__name__}")
    return value


def each(value: Any, field: str, read: Callable[[Any, str], None]) -> None:
    """Calls `read(item, its field)` for each item of a list, which must have at least one."""
    if not isinstance(value, list) or not value:
        raise BadRow(field, "is missing" if value is None else "must be a list of messages with at least one")
    for index, item in enumerate(value):
        read(item, f"{field}.{index}")


def key_of(row: Row) -> str:
    """The row's own name, if it has one that is fit for a key."""
    name = row.get("key", row.get("id"))
    return name if isinstance(name, str) and 0 < len(name) <= 200 else ""
