"""Brings databases made before 22 November 2026 to what `0001_initial` says since: until then it was changed in place.

Where everything is there already, nothing changes. The functions and triggers are those of `0001_initial` and
`0002_whole_versions_stay`, which cannot be asked: what has been applied never changes again.
"""

from django.db import migrations

# A column that a trigger looks at cannot change its collation: the trigger goes, and comes back as it was.
COLLATION = """
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute JOIN pg_collation ON pg_collation.oid = attcollation
        WHERE attrelid = 'datasets_example'::regclass AND attname IN ('key', 'digest') AND collname <> 'C'
    ) THEN
        DROP TRIGGER IF EXISTS content_stays ON datasets_example;
        ALTER TABLE datasets_example
            ALTER COLUMN key TYPE varchar(200) COLLATE "C", ALTER COLUMN digest TYPE varchar(64) COLLATE "C";
        CREATE TRIGGER content_stays BEFORE UPDATE ON datasets_example FOR EACH ROW
        WHEN ((OLD.key, OLD.digest, OLD.canonical) IS DISTINCT FROM (NEW.key, NEW.digest, NEW.canonical))
        EXECUTE FUNCTION datasets_stays('the content of an example');
    END IF;
END $$;
"""
# A position of a version is its key; the number that a member had was nobody's.
MEMBERS = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'datasets_versionmember'::regclass AND attname = 'id'
               AND NOT attisdropped) THEN
        ALTER TABLE datasets_versionmember DROP COLUMN id;  -- and with it the primary key
        ALTER TABLE datasets_versionmember DROP CONSTRAINT IF EXISTS one_example_per_position;
        ALTER TABLE datasets_versionmember ADD CONSTRAINT datasets_versionmember_pkey PRIMARY KEY (version_id, position);
    END IF;
END $$;
"""
WORDS = """
ALTER TABLE datasets_wordhits DROP CONSTRAINT IF EXISTS datasets_wordhits_pkey;
ALTER TABLE datasets_wordhits ALTER COLUMN offsets SET STORAGE EXTERNAL;
ALTER TABLE datasets_packedcolumn ALTER COLUMN data SET STORAGE EXTERNAL;
"""
# References that triggers check, once for a statement
REFERENCES = """
ALTER TABLE datasets_example DROP CONSTRAINT IF EXISTS datasets_example_dataset_id_9d1a0ea6_fk_datasets_dataset_id;
ALTER TABLE datasets_wordhits DROP CONSTRAINT IF EXISTS datasets_wordhits_dataset_id_47df2ec7_fk_datasets_dataset_id;
CREATE OR REPLACE FUNCTION datasets_dataset_exists() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(DISTINCT dataset_id) FROM named) > (SELECT count(*) FROM (
            SELECT FROM datasets_dataset WHERE id = ANY (ARRAY(SELECT DISTINCT dataset_id FROM named)) FOR KEY SHARE
        ) AS held) THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such dataset';
        END IF;
        RETURN NULL;
    END $$;
CREATE OR REPLACE FUNCTION datasets_filled_stay() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM gone WHERE EXISTS (SELECT FROM datasets_example WHERE dataset_id = gone.id)
                   OR EXISTS (SELECT FROM datasets_wordhits WHERE dataset_id = gone.id)) THEN
            RAISE foreign_key_violation USING MESSAGE = 'a dataset with examples cannot be deleted';
        END IF;
        RETURN NULL;
    END $$;
CREATE OR REPLACE TRIGGER dataset_exists AFTER INSERT ON datasets_example
    REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION datasets_dataset_exists();
CREATE OR REPLACE TRIGGER changed_dataset_exists AFTER UPDATE ON datasets_example
    REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION datasets_dataset_exists();
CREATE OR REPLACE TRIGGER dataset_exists AFTER INSERT ON datasets_wordhits
    REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION datasets_dataset_exists();
CREATE OR REPLACE TRIGGER changed_dataset_exists AFTER UPDATE ON datasets_wordhits
    REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION datasets_dataset_exists();
CREATE OR REPLACE TRIGGER filled_stay AFTER DELETE ON datasets_dataset
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION datasets_filled_stay();
"""


class Migration(migrations.Migration):
    dependencies = [("datasets", "0003_imports_can_be_cancelled")]

    operations = [
        migrations.RunSQL(COLLATION, migrations.RunSQL.noop),
        migrations.RunSQL(MEMBERS, migrations.RunSQL.noop),
        migrations.RunSQL(WORDS, migrations.RunSQL.noop),
        migrations.RunSQL(REFERENCES, migrations.RunSQL.noop),
    ]
