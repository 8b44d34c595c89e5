"""Config problems, each at the field it concerns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """`path` is dotted, as in the JSON: `optim.minibatch_size`. Empty: the config as a whole."""

    path: str
    message: str


class ConfigInvalid(ValueError):
    """Raised before anything is queued. `problems` holds every field that is wrong, not only the first."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path or 'config'}: {p.message}" for p in problems))
