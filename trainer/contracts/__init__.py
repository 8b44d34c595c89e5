"""Frozen records that the web side and the trainer share. Light to import: pydantic only."""

from .events import (
    MAX_EVENTS_PER_POST,
    MAX_POST_BYTES,
    TERMINAL_STATES,
    ArtifactData,
    CriterionResult,
    EventBatch,
    Histogram,
    IngestReply,
    LogData,
    MetricsData,
    ProgressData,
    RolloutRecord,
    RolloutsData,
    RunAssignment,
    RunEvent,
    RunState,
    StateData,
    TokenSpan,
)
from .example import Example, Message, Preference, Reason, Response
from .model_folder import ModelFacts, ModelFile, OutputRole
from .rubric import Criterion, Rubric, VerifierSpec
from .verdict import Verdict

__all__ = [
    "MAX_EVENTS_PER_POST",
    "MAX_POST_BYTES",
    "TERMINAL_STATES",
    "ArtifactData",
    "Criterion",
    "CriterionResult",
    "EventBatch",
    "Example",
    "Histogram",
    "IngestReply",
    "LogData",
    "Message",
    "MetricsData",
    "ModelFacts",
    "ModelFile",
    "OutputRole",
    "Preference",
    "ProgressData",
    "Reason",
    "Response",
    "RolloutRecord",
    "TokenSpan",
    "RolloutsData",
    "Rubric",
    "RunAssignment",
    "RunEvent",
    "RunState",
    "StateData",
    "Verdict",
    "VerifierSpec",
]
