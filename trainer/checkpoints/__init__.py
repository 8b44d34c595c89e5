"""Checkpoints of safetensors and JSON: nothing in them is ever executed.

A checkpoint is a folder `step-000010` with the tensors of each owner of state (`policy.safetensors`, `optimizer.safetensors`)
and `state.json`, the index. Where several processes hold a model together, each writes a file with its rows of every tensor
(`policy-00001-of-00002.safetensors`), and the index says which they are: any number of processes resumes from it. Nothing is
seen of a checkpoint that is not whole, whatever killed who wrote it. `place.py` is all that knows where the files lie.
"""

from .place import CheckpointPlace, Folder, OutOfReach, name_of
from .shares import File, Rows, StoredTensors, write_share
from .whole import (
    Checkpoint,
    CheckpointInvalid,
    Elsewhere,
    Loaded,
    Saved,
    is_saved,
    load,
    load_newest,
    load_step,
    save,
    steps,
)

__all__ = [
    "Checkpoint",
    "CheckpointInvalid",
    "Elsewhere",
    "File",
    "Folder",
    "Loaded",
    "OutOfReach",
    "CheckpointPlace",
    "Rows",
    "Saved",
    "StoredTensors",
    "is_saved",
    "load",
    "load_newest",
    "load_step",
    "name_of",
    "save",
    "steps",
    "write_share",
]
