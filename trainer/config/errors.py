"""Problems of a config, each at its field."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """`path` is dotted, as in `optim.minibatch_size`. If it is empty, the problem is one of the whole config."""

    path: str
    message: str


class ConfigInvalid(ValueError):
    """A config is refused before anything is queued. `problems` holds every field that is wrong, not only the first."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path or 'config'}: {p.message}" for p in problems))
