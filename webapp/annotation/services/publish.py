"""Answers become a version of the dataset."""


def carry_out(project_id: int, user_id: int, choice: dict[str, object]) -> None: ...
