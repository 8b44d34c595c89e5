"""An agent's trace: what it said, which tools it called, and what came back, step by step."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from .base import Record

StepKind = Literal["text", "reasoning", "call", "result"]


class TraceStep(Record):
    """One step of a trace. Steps are numbered from 1 in the order in which they came.

    `text` is what was said; for a call its arguments, for a result the answer of the tool, both as they were sent. `call` is the id by
    which a result names its call. `failed`: the result says that the tool failed.
    """

    kind: StepKind = "text"
    role: Literal["system", "user", "assistant", "tool"] = "assistant"
    text: str = ""
    tool: str = Field(default="", max_length=200)
    call: str = Field(default="", max_length=200)
    failed: bool = False

    @property
    def by_agent(self) -> bool:
        """Whether the agent took this step: it said, thought or called something. What others told it is not its step."""
        return self.role == "assistant" and self.kind != "result"

    @property
    def title(self) -> str:
        """The author of the step and what was done, in a few words."""
        if self.kind == "call":
            return f"calls {self.tool or 'a tool without a name'}"
        if self.kind == "result":
            return f"{'error' if self.failed else 'result'} of {self.tool or 'a tool without a name'}"
        return "thinks" if self.kind == "reasoning" else {"assistant": "says"}.get(self.role, f"{self.role} says")


def as_text(steps: Sequence[TraceStep]) -> str:
    """A trace as one text, each step under its number and title, for programs that read responses as texts."""
    return "\n\n".join(f"[{number}] {step.title}\n{step.text}".rstrip() for number, step in enumerate(steps, 1))
