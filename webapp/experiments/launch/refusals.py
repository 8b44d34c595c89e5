"""Puts into words why a launch for which nobody waits was refused, for the row that keeps the reason."""

from trainer.config import ConfigInvalid
from webapp.core.problems import Problem


def refusal_message(error: Exception) -> str:
    """The message with every field at fault."""
    if isinstance(error, ConfigInvalid):
        return "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
    if isinstance(error, Problem) and error.fields:
        return f"{error.message} {'; '.join(f'{path}: {text}' for path, text in error.fields.items())}"
    return str(error)
