"""Examples know the hash of their prompt, so that one prompt stands on one side of the split.

The hashes of the rows that are there are computed here, as `webapp.datasets.prompt_hashes` did when this was written.
"""

import json
from hashlib import blake2b
from unicodedata import normalize

from django.db import migrations, models

ROWS = 2_000


def prompt_hash(content):
    messages = (f"{message['role']}\x1f{normalised(message['content'])}" for message in content["prompt"])
    data = "\x1e".join(messages).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def normalised(text):
    if not text.isascii():
        text = normalize("NFKC", normalize("NFKC", text).casefold())
    return " ".join(text.lower().split())


def fill(apps, schema_editor):
    last = 0
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT id, canonical FROM datasets_example WHERE id > %s ORDER BY id LIMIT %s", [last, ROWS]
            )
            rows = cursor.fetchall()
            if not rows:
                return
            last = rows[-1][0]
            ids, hashes = [row[0] for row in rows], [prompt_hash(json.loads(row[1])) for row in rows]
            cursor.execute(
                """
                UPDATE datasets_example AS example SET prompt_hash = given.hash
                FROM unnest(%s::bigint[], %s::bigint[]) AS given (id, hash) WHERE example.id = given.id
                """,
                [ids, hashes],
            )


class Migration(migrations.Migration):
    dependencies = [("datasets", "0005_training_counts")]

    operations = [
        migrations.AddField("example", "prompt_hash", models.BigIntegerField(default=0)),
        migrations.AddField("example", "group_hash", models.BigIntegerField(default=0)),
        migrations.AddField("dataset", "group_by", models.CharField(blank=True, max_length=80)),
        migrations.AddField("importjob", "group_by", models.CharField(blank=True, max_length=80)),
        migrations.AddField("importjob", "overlaps", models.JSONField(default=dict)),
        migrations.AlterField(
            "curationjob",
            "kind",
            models.CharField(
                choices=[
                    ("derive", "Derive a version"),
                    ("duplicates", "Find duplicates"),
                    ("leaks", "Find leaks"),
                    ("criteria", "Find criteria that never discriminate"),
                    ("structure", "Check rubrics"),
                ],
                max_length=12,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
