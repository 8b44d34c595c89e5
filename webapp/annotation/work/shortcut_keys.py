"""A person's own keys at the workbench. `queue` changes tasks and answers."""

import re
from collections.abc import Mapping

from webapp.accounts.models import Membership
from webapp.core.problems import Invalid

from ..models import Participant, Project

ACTION = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
MAX_KEYS, MAX_KEY = 80, 20
# Tab moves the focus, Escape leaves, Alt belongs to the system: without them a person could not leave or finish a task
RESERVED = re.compile(r"(.*\+)?(Tab|Escape|Dead|Unidentified)\Z|(.*\+)?Alt\+")


def set_keys(membership: Membership, project: Project, keys: Mapping[str, str]) -> dict[str, str]:
    """Replaces the person's own keys in this project, {action: key}; an absent action has the project's key.

    Raises Invalid at an action whose key cannot be used, or is used twice.
    """
    problems = {}
    for action, key in keys.items():
        if reason := _problem(action, key):
            problems[f"keys.{action}"[:80]] = reason
        elif list(keys.values()).count(key) > 1:
            problems[f"keys.{action}"] = f"{key} is given to more than one action"
    if len(keys) > MAX_KEYS:
        problems["keys"] = f"at most {MAX_KEYS} keys can be set"
    if problems:
        raise Invalid("These keys cannot be used.", problems)
    participant, _ = Participant.objects.get_or_create(project=project, user_id=membership.user_id)
    Participant.objects.filter(pk=participant.pk).update(keys=dict(keys))
    return dict(keys)


def _problem(action: str, key: str) -> str:
    if not ACTION.match(action):
        return "is not the name of an action"
    if not 1 <= len(key) <= MAX_KEY or any(not letter.isprintable() for letter in key):
        return f"a key is written with 1 to {MAX_KEY} characters, like s, Backspace or Mod+Enter"
    if RESERVED.match(key):
        return f"{key} belongs to the browser or the system"
    return ""
