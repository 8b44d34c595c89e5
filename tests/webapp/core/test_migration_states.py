"""A copied field is the field that Django would construct."""

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import StateApps
from django.db.migrations.writer import MigrationWriter

from webapp.core.migration_states import copied_fields


@pytest.fixture(scope="module")
def state():
    """The models of all migrations."""
    return MigrationLoader(None).project_state()


def fields(apps: StateApps) -> dict[str, list[tuple[object, ...]]]:
    """By model, in their order: each field as a migration would write it, and its column."""
    return {
        model._meta.label: [
            (
                field.name,
                type(field),
                MigrationWriter.serialize(field)[0],
                field.db_parameters(connection),
                field.auto_created,
            )
            for field in model._meta.local_fields + model._meta.local_many_to_many
        ]
        for model in apps.get_models(include_auto_created=True)
    }


def test_models_have_the_same_fields_in_the_same_order(state):
    constructed = fields(StateApps(state.real_apps, state.models))
    with copied_fields():
        copied = fields(StateApps(state.real_apps, state.models))
    assert copied == constructed and len(copied) > 100 and sum(map(len, copied.values())) > 900


def test_a_model_takes_the_copy_and_leaves_the_field_as_it_was(state):
    of_state = {id(field): dict(field.__dict__) for model in state.models.values() for field in model.fields.values()}
    with copied_fields():
        StateApps(state.real_apps, state.models)
        for model in state.models.values():
            for field in model.fields.values():
                copy = field.clone()
                assert copy is not field and copy.creation_counter != field.creation_counter
                copy.default = "another"
                assert copy.remote_field is None or copy.remote_field is not field.remote_field
                assert not hasattr(field, "model") and dict(field.__dict__) == of_state[id(field)]


def test_a_copy_knows_no_default_of_before():
    field = models.IntegerField(default=1)
    assert field.get_default() == 1
    with copied_fields():
        copy = field.clone()
    copy.default = 2
    assert copy.get_default() == 2


def test_a_field_of_a_model_is_constructed():
    field = get_user_model()._meta.get_field("email")
    with copied_fields():
        assert not hasattr(field.clone(), "model")
