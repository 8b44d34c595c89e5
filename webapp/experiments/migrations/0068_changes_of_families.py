from django.db import migrations

# The means of a folded row change with the values of its runs, and with the runs: one comes, goes, is archived or taken back, or belongs to
# another row. The values of a statement are mostly those of one run. Each run is looked up by itself, so no plan that was made for many runs
# is used for one.
WATCHED = """
CREATE FUNCTION experiments_family_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO experiments_familychange (experiment_id, kin)
        VALUES (OLD.experiment_id, CASE WHEN OLD.family = '' THEN OLD.id::text ELSE OLD.family END);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO experiments_familychange (experiment_id, kin)
        VALUES (NEW.experiment_id, CASE WHEN NEW.family = '' THEN NEW.id::text ELSE NEW.family END);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER family_comes_or_goes AFTER INSERT OR DELETE ON experiments_run
FOR EACH ROW EXECUTE FUNCTION experiments_family_changes();
CREATE TRIGGER family_changes AFTER UPDATE ON experiments_run FOR EACH ROW
WHEN ((OLD.experiment_id, OLD.family, OLD.archived_at) IS DISTINCT FROM (NEW.experiment_id, NEW.family, NEW.archived_at))
EXECUTE FUNCTION experiments_family_changes();
CREATE FUNCTION experiments_logged_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiments_familychange (experiment_id, kin)
    SELECT experiment_id, CASE WHEN family = '' THEN id::text ELSE family END FROM experiments_run WHERE id = NEW.run_id;
    RETURN NULL;
END $$;
CREATE TRIGGER family_is_deleted AFTER INSERT OR UPDATE OF deleted_at ON tracking_loggedrun
FOR EACH ROW EXECUTE FUNCTION experiments_logged_changes();
CREATE FUNCTION experiments_value_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    told bigint;
BEGIN
    FOR told IN SELECT DISTINCT run_id FROM written LOOP
        INSERT INTO experiments_familychange (experiment_id, kin)
        SELECT experiment_id, CASE WHEN family = '' THEN id::text ELSE family END FROM experiments_run WHERE id = told;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER family_values_come AFTER INSERT ON experiments_runvalue
REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION experiments_value_changes();
CREATE TRIGGER family_values_change AFTER UPDATE ON experiments_runvalue
REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION experiments_value_changes();
CREATE TRIGGER family_values_go AFTER DELETE ON experiments_runvalue
REFERENCING OLD TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION experiments_value_changes();
"""
FORGOTTEN = """
DROP TRIGGER family_values_go ON experiments_runvalue;
DROP TRIGGER family_values_change ON experiments_runvalue;
DROP TRIGGER family_values_come ON experiments_runvalue;
DROP FUNCTION experiments_value_changes();
DROP TRIGGER family_is_deleted ON tracking_loggedrun;
DROP FUNCTION experiments_logged_changes();
DROP TRIGGER family_changes ON experiments_run;
DROP TRIGGER family_comes_or_goes ON experiments_run;
DROP FUNCTION experiments_family_changes();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0067_means_of_families"),
        ("tracking", "0004_metrics_of_models"),
    ]

    operations = [migrations.RunSQL(WATCHED, FORGOTTEN)]
