"""Faster migrations. Between two operations Django makes the models again. It spends most of the time of migrations on this, in two ways that
operations need rarely.

- It makes each field of a model by its constructor, from what the field tells of itself. Such a field belongs to no model yet, so a copy is
  the same.
- It also makes every model again that is related to the changed one, over any number of relations. Most operations look only at
  their own model and at the tables that its fields name. For a migration with no other operations, only the changed model is made
  again. The state is then marked as delayed, as by Django itself: `RunPython`, and who asks for the models in the end, gets models that were
  all made again. A migration with any other operation begins with such models too, and is then applied as by Django.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from django.db.migrations.utils import get_references
from django.db.models import Field

_constructed: Any = Field.clone
_applied: Any = MigrationExecutor.apply_migration
_reloaded: Any = ProjectState.reload_model
DJANGO = "django.db.models.fields"  # its fields hold nothing that changes when a model takes them, besides what their copy has for itself
# They ask the state only for their own model, and its fields for the table and the column to which they point
ALONE = {
    operations.AddConstraint,
    operations.AddField,
    operations.AddIndex,
    operations.AlterModelOptions,
    operations.AlterUniqueTogether,
    operations.RemoveConstraint,
    operations.RemoveIndex,
    operations.RunPython,
}


@contextmanager
def fast() -> Iterator[None]:
    """For the time of migrations. Nothing else may use the models of migrations meanwhile, so it is for processes that only migrate."""
    Field.clone = _copied  # type: ignore[assignment,method-assign]
    MigrationExecutor.apply_migration = _apply  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Field.clone = _constructed  # type: ignore[method-assign]
        MigrationExecutor.apply_migration = _applied  # type: ignore[method-assign]


def _copied(field: Any) -> Any:
    if hasattr(field, "model") or not type(field).__module__.startswith(DJANGO):
        return _constructed(field)
    made = deepcopy(field)  # Field.__deepcopy__: what it says of a related model is copied, and nothing else
    made.__dict__.pop("_get_default", None)  # who takes the copy may change its default
    if made.auto_created:
        made.creation_counter = Field.auto_creation_counter
        Field.auto_creation_counter -= 1
    else:  # models have their fields in the order in which these were made
        made.creation_counter = Field.creation_counter
        Field.creation_counter += 1
    return made


def _apply(executor: Any, state: Any, migration: Migration, *told: Any, **named: Any) -> Any:
    if all(_looks_at_one_model(each, migration.app_label, state) for each in migration.operations):
        ProjectState.reload_model = _reload_one  # type: ignore[assignment,method-assign]
        try:
            state = _applied(executor, state, migration, *told, **named)
        finally:
            ProjectState.reload_model = _reloaded  # type: ignore[method-assign]
        state.has_old_relations = True
        return state
    if getattr(state, "has_old_relations", False):
        state.__dict__.pop("apps", None)
        state.has_old_relations = False
        state.apps  # noqa: B018  makes all models
    return _applied(executor, state, migration, *told, **named)


def _looks_at_one_model(operation: Any, app: str, state: Any) -> bool:
    if not type(operation).__module__.startswith(operations.__name__):
        return False  # what another class of operation does is not known
    match operation:
        case operations.CreateModel():
            return bool(operation.bases == (models.Model,))
        case operations.RunSQL():
            return not operation.state_operations
        case operations.SeparateDatabaseAndState():
            inner = (*operation.database_operations, *operation.state_operations)
            return all(_looks_at_one_model(each, app, state) for each in inner)
        case operations.AlterField() | operations.RemoveField():
            key, name = (app, operation.model_name_lower), operation.name
            before = state.models[key].fields.get(name) if key in state.models else None
            now = getattr(operation, "field", None) or before  # RemoveField names none
            return before is not None and not any(_has_others(each, name, key, state) for each in (before, now))
        case _:
            return type(operation) in ALONE


def _has_others(field: Any, name: str, model: tuple[str, str], state: Any) -> bool:
    """Whether fields of other models can depend on this one. A relation of many to many only depends on the primary key."""
    found = (reference for *_, reference in get_references(state, model, (name, field)))
    named = (each.through or each.to[1] is not None for each in found)
    return bool(field.is_relation or field.primary_key or field.unique or any(named))


def _reload_one(state: Any, app_label: str, model_name: str, delay: bool = False) -> None:
    """Replaces `ProjectState.reload_model`."""
    if "apps" in state.__dict__:
        state.is_delayed = True
        state._reload({(app_label, model_name)})
