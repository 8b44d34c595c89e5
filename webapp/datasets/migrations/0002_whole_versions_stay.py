from django.db import migrations

# What a digest was taken of stays as it is, whoever asks: an example's content, and of a version that is whole its number,
# its digest and its members. A version that is still filled has no digest yet. What is frozen is never a draft again.
STAYS = """
CREATE FUNCTION datasets_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% cannot change', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER content_stays BEFORE UPDATE ON datasets_example FOR EACH ROW
WHEN ((OLD.key, OLD.digest, OLD.canonical) IS DISTINCT FROM (NEW.key, NEW.digest, NEW.canonical))
EXECUTE FUNCTION datasets_stays('the content of an example');
CREATE TRIGGER whole_version_stays BEFORE UPDATE ON datasets_datasetversion FOR EACH ROW
WHEN (
    (OLD.digest <> '' AND (OLD.dataset_id, OLD.number, OLD.digest) IS DISTINCT FROM (NEW.dataset_id, NEW.number, NEW.digest))
    OR (OLD.state = 'frozen' AND NEW.state <> 'frozen')
)
EXECUTE FUNCTION datasets_stays('a version that is whole or frozen');
CREATE FUNCTION datasets_members_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM listed JOIN datasets_datasetversion AS version ON version.id = listed.version_id
               WHERE version.digest <> '') THEN
        RAISE EXCEPTION 'the members of a version that is whole cannot change' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER members_stay AFTER UPDATE ON datasets_versionmember
REFERENCING OLD TABLE AS listed FOR EACH STATEMENT EXECUTE FUNCTION datasets_members_stay();
"""
MAY_CHANGE = """
DROP TRIGGER members_stay ON datasets_versionmember;
DROP FUNCTION datasets_members_stay();
DROP TRIGGER whole_version_stays ON datasets_datasetversion;
DROP TRIGGER content_stays ON datasets_example;
DROP FUNCTION datasets_stays();
"""


class Migration(migrations.Migration):
    dependencies = [("datasets", "0001_initial")]

    operations = [migrations.RunSQL(STAYS, MAY_CHANGE)]
