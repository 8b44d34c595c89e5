"""Remarks about a task, and requests to change the guidelines: of the annotator who has the task, or of a reviewer."""

from webapp.accounts.models import User
from webapp.core.problems import Invalid
from webapp.core.text.texts import several_lines

from ..models import Comment, Task

MOST = 4000  # characters


def add(author: User, task: Task, kind: str, text: str) -> Comment:
    """Raises Invalid at `kind` or `text`."""
    if kind not in Comment.Kind.values:
        raise Invalid(
            "The kind of the remark is not known.", {"kind": f"must be one of {', '.join(Comment.Kind.values)}"}
        )
    text = several_lines(text, MOST, "The remark is empty or too long.", "text")
    return Comment.objects.create(task=task, project_id=task.project_id, kind=kind, text=text, author=author)
