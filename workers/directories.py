"""Applies the roles that an owner gives to a directory's group to the people who are in it."""

from celery import shared_task

from webapp.identity import groups


@shared_task(name="workers.directories.follow_group")
def follow_group(workspace_id: int, group: str) -> None:
    """A task that is lost is made up for by each person's next sign-in, and by the directory's next word about them."""
    groups.follow_group(workspace_id, group)
