"""The shape of a registered model, from the files on this machine."""

from pathlib import Path

from trainer.memory.shape import ModelShape, ShapeUnknown, read_shape

from .. import queries
from ..models import RegisteredModel


def shape_of(model: RegisteredModel) -> ModelShape:
    """Raises ShapeUnknown, also if the files are on another machine."""
    folder = Path(queries.source(model).path)
    if not folder.is_absolute() or not folder.is_dir():
        raise ShapeUnknown("the model's files are not on this machine")
    return read_shape(folder)
