"""Fast migrations make the models and tables that Django would make."""

from contextlib import nullcontext, suppress

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, models, transaction
from django.db.migrations import Migration, operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState, StateApps
from django.db.migrations.writer import MigrationWriter

from webapp.core.database import migration_states
from webapp.core.database.migration_states import fast


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
    with fast():
        copied = fields(StateApps(state.real_apps, state.models))
    assert copied == constructed and len(copied) > 100 and sum(map(len, copied.values())) > 900


def test_a_model_takes_the_copy_and_leaves_the_field_as_it_was(state):
    of_state = {id(field): dict(field.__dict__) for model in state.models.values() for field in model.fields.values()}
    with fast():
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
    with fast():
        copy = field.clone()
    copy.default = 2
    assert copy.get_default() == 2


def test_a_field_of_a_model_is_constructed():
    field = get_user_model()._meta.get_field("email")
    with fast():
        assert not hasattr(field.clone(), "model")


def pointing(apps: StateApps) -> dict[str, tuple[str, str]]:
    """The table and column to which each relation points."""
    return {
        str(field): (field.remote_field.model._meta.db_table, field.target_field.column)  # type: ignore[attr-defined]
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.local_fields
        if field.is_relation
    }


def test_after_all_migrations_the_models_have_the_fields_and_tables_of_those_that_django_makes_at_once(
    state, monkeypatch
):
    """The database is left out: each migration only changes the state."""
    loader, by_django = MigrationLoader(None), []
    monkeypatch.setattr(
        migration_states, "_applied", lambda executor, now, each: each.mutate_state(now, preserve=False)
    )
    now = ProjectState(real_apps=loader.unmigrated_apps)
    with fast():
        for key in loader.graph._generate_plan(loader.graph.leaf_nodes(), True):
            now.apps  # noqa: B018  as the executor does
            now = MigrationExecutor.apply_migration(None, now, loader.graph.nodes[key])
            by_django += [] if getattr(now, "has_old_relations", False) else [key]
        together = StateApps(now.real_apps, now.models)  # type: ignore[arg-type]
        assert fields(now.apps) == fields(together) and pointing(now.apps) == pointing(together)
    assert now.models.keys() == state.models.keys() and len(by_django) * 5 < len(loader.graph.nodes), by_django


NUMBER = models.IntegerField(default=1)
FIRST = Migration("0001", "fast")
FIRST.operations = [  # type: ignore[misc]
    operations.CreateModel(
        "Shelf", [("id", models.BigAutoField(primary_key=True)), ("code", models.IntegerField(unique=True))]
    ),
    operations.CreateModel(
        "Book", [("id", models.BigAutoField(primary_key=True)), ("title", models.CharField(max_length=9))]
    ),
]
ALONE = [
    operations.AddField("shelf", "height", NUMBER),
    operations.AddField("book", "shelf", models.ForeignKey("fast.shelf", models.CASCADE, null=True)),
    operations.AddField("book", "beside", models.ForeignKey("fast.shelf", models.CASCADE, null=True, to_field="code", related_name="+")),
    operations.AddField("shelf", "favourites", models.ManyToManyField("fast.book", related_name="+")),
    operations.AlterField("book", "title", models.TextField(db_index=True)),
    operations.AddConstraint("book", models.CheckConstraint(condition=models.Q(title__gt=""), name="fast_title")),
    operations.AddIndex("book", models.Index(fields=["shelf", "title"], name="fast_place")),
    operations.AlterUniqueTogether("book", {("shelf", "title")}),
    operations.AddField("shelf", "width", models.IntegerField(default=2, db_default=2)),
    operations.RemoveField("shelf", "height"),
    operations.CreateModel("Page", [("book", models.OneToOneField("fast.book", models.CASCADE, primary_key=True))]),
]  # fmt: skip


class AddsTwo(operations.AddField):
    """What it does is not known."""


OTHERS = [
    AddsTwo("shelf", "depth", NUMBER),
    operations.AlterField("shelf", "id", models.IntegerField(primary_key=True)),  # the columns that point to it change too
    operations.AlterField("shelf", "code", models.BigIntegerField(unique=True)),
    operations.RenameModel("Book", "Volume"),
    operations.RenameField("shelf", "width", "inches"),
    operations.RemoveField("volume", "beside"),
    operations.DeleteModel("Page"),
]  # fmt: skip


def migrations() -> list[Migration]:
    made = [FIRST]
    for number, operation in enumerate([*ALONE, *OTHERS, *ALONE[:1]], 2):
        made.append(Migration(f"{number:04}", "fast"))
        made[-1].operations = [operation]  # type: ignore[misc]
    return made


def made_in_the_database() -> tuple[list[tuple[str, ...]], list[bool]]:
    """What the database says of the tables, and for each migration whether Django would have made more models than it changed."""
    executor, state, alone = MigrationExecutor(connection), ProjectState(), []
    for each in migrations():
        state.apps  # noqa: B018
        state = executor.apply_migration(state, each)
        alone.append(getattr(state, "has_old_relations", False))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid::regclass::text LIKE 'fast_%' UNION ALL"
            " SELECT tablename::text, indexname::text, indexdef FROM pg_indexes WHERE tablename LIKE 'fast_%' UNION ALL"
            " SELECT table_name::text, column_name::text, concat_ws(' ', data_type, is_nullable, column_default)"
            " FROM information_schema.columns WHERE table_name LIKE 'fast_%' ORDER BY 1, 2, 3"
        )
        return cursor.fetchall(), alone


@pytest.mark.django_db
def test_the_database_has_the_same_columns_constraints_and_indexes():
    tables = []
    for context in (nullcontext, fast):
        with suppress(Undone), transaction.atomic():
            with context():
                tables.append(made_in_the_database())
            raise Undone
    (by_django, none), (made_fast, alone) = tables
    assert made_fast == by_django and len(made_fast) > 30
    assert not any(none) and alone == [True] * (1 + len(ALONE)) + [False] * len(OTHERS) + [True]


class Undone(Exception):
    """Rolls the transaction back."""


@pytest.mark.django_db
def test_a_program_between_migrations_sees_all_relations():
    """Also those of models that were not made again when the model to which they point was."""
    seen = []
    last = Migration("9999", "fast")
    last.operations = [operations.RunPython(lambda apps, _: seen.append(apps))]  # type: ignore[misc]
    executor, state = MigrationExecutor(connection), ProjectState()
    with fast():
        for each in (migrations()[0], migrations()[2], migrations()[1], last):
            state.apps  # noqa: B018
            state = executor.apply_migration(state, each)
    (new,), old = seen, state.apps
    assert old.get_model("fast", "Book").shelf.field.remote_field.model is not old.get_model("fast", "Shelf")
    assert new.get_model("fast", "Book").shelf.field.remote_field.model is new.get_model("fast", "Shelf")
    assert not new.get_model("fast", "Shelf").objects.filter(book__title="x", height=1).exists()
