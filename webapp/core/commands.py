"""Commands whose output a program reads."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from .text.jsonlines import as_json_text


class JsonCommand(BaseCommand):
    """Prints one JSON object in any case: if the command fails, `refused`, besides the message on stderr and status 1.

    So a script can read the output before it looks at the status, and never takes empty output for a result.
    """

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except OSError as error:
            problem = CommandError(
                f"{error.filename}: cannot be read: {error.strerror}" if error.filename else str(error)
            )
            self._say(problem, options)
            raise problem from error
        except CommandError as problem:
            self._say(problem, options)
            raise

    def _say(self, problem: CommandError, options: dict[str, Any]) -> None:
        self.stdout.write(as_json_text(self.refused(str(problem), options)))

    def refused(self, error: str, options: dict[str, Any]) -> dict[str, Any]:
        """The output of a command that fails with these words."""
        return {"error": error}
