from django.db import migrations

# Every row is looked up in the index, whatever the planner believes about the tables. A join could also read all rows once and compare each
# with each: it did so after the statistics of an emptied table, and an import then took longer with every batch. With OFFSET the question
# stays a look-up for each row, and never becomes a join
BY_INDEX = """
    CREATE OR REPLACE FUNCTION datasets_members_exist() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
    BEGIN
        IF EXISTS (SELECT FROM named WHERE NOT EXISTS (
            SELECT FROM datasets_example WHERE id = named.example_id OFFSET 0
        )) THEN
            RAISE foreign_key_violation USING MESSAGE = 'a version cannot list an example that is not there';
        END IF;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE FUNCTION datasets_listed_stay() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
    BEGIN
        IF EXISTS (SELECT FROM gone WHERE EXISTS (
            SELECT FROM datasets_versionmember WHERE example_id = gone.id OFFSET 0
        )) THEN
            RAISE foreign_key_violation USING MESSAGE = 'an example that a version lists cannot be deleted';
        END IF;
        RETURN NULL;
    END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("datasets", "0016_lineage_is_indexed_at_once")]

    operations = [migrations.RunSQL(BY_INDEX, migrations.RunSQL.noop)]
