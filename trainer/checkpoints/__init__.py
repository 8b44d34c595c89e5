"""Checkpoints of safetensors and JSON: nothing in them is ever executed.

A checkpoint is a folder `step-000010` with the tensors of each owner of state (`policy.safetensors`, `optimizer.safetensors`)
and `state.json`, the index. If several processes hold a model together, each writes a file with its rows of every tensor
(`policy-00001-of-00002.safetensors`), and the index says which rows these are: any number of processes can resume from it. An incomplete
checkpoint is never seen, even if a writer was killed. Only `place.py` knows where the files lie.
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
