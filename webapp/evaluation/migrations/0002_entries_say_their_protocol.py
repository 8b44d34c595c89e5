"""Judges audited until now say in which orders they were asked, so that leaderboards keep them apart as they do new ones.

Their cases tell: each carries the orders in its tags. On which items the numbers rest is told from the cases, too.
"""

from hashlib import sha256

from django.db import migrations

ORDERS = ("given", "swapped")
SQL = """
    SELECT subject->>'judge', coalesce(subject->>'group', ''), coalesce(subject->>'pair', subject->>'example', ''),
           ARRAY(SELECT DISTINCT split_part(tag, ':', 2) FROM unnest(tags) AS tag
                 WHERE tag ~ '^(right|wrong|missing):(given|swapped)$')
    FROM evaluation_case WHERE evaluation_id = %s AND subject ? 'judge'
"""


def fill(apps, schema_editor):
    rows = apps.get_model("evaluation", "Evaluation").objects.filter(
        recipe="judge_audit", results__entries__0__isnull=False
    )
    for row in rows.iterator():
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(SQL, [row.pk])
            cases = [
                (judge, group, pair, tuple(o for o in ORDERS if o in asked)) for judge, group, pair, asked in cursor
            ]
        for entry in row.results["entries"]:
            mine = [case[1:] for case in cases if case[0] == entry["name"]]
            asked = {orders for *_, orders in mine}
            if not mine or () in asked or "protocol" in entry:
                continue
            (one, *more) = asked
            entry["protocol"] = "mixed" if more else "both" if len(one) > 1 else one[0]
            names = sorted(map(str, mine))
            entry["items"] = sha256("\n".join(names).encode()).hexdigest()[:16]
            entry["item_count"] = len(names)
        row.save(update_fields=["results"])


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0001_initial")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=False)]
