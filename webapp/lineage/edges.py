"""The relations of lineage, read from the rows as they are: each relation is declared once, and can be followed in either direction.

Nothing is copied into a graph of its own. An edge leads from what stands `above` to what was made of it, `below`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """`up` and `down` are the columns of `source` (tables, joined) that hold the ids. `many`: a pair may come several times.
    `ways`: in which directions it is followed."""

    above: str
    below: str
    source: str
    up: str
    down: str
    where: str = "TRUE"
    many: bool = False
    ways: tuple[str, ...] = ("down", "up")

    def sql(self, way: str) -> str:
        """The rows that are one step from the row `r` (kind, id)."""
        here, there = (self.up, self.down) if way == "down" else (self.down, self.up)
        start, kind = (self.above, self.below) if way == "down" else (self.below, self.above)
        found = f"({there})::bigint AS id FROM {self.source}"
        where = f"{_starts(start, kind, way)} AND {here} = r.id AND ({there}) IS NOT NULL AND {self.where}"
        return f"SELECT {'DISTINCT ' if self.many else ''}'{kind}'::text AS kind, {found} WHERE {where}"


@dataclass(frozen=True)
class NamedRelation:
    """Rows of `table` whose JSON `column` names ids of `above`, each at one of `paths`: `judge`, `judges[*].version`."""

    above: str
    below: str
    table: str
    column: str
    paths: tuple[str, ...]
    ways: tuple[str, ...] = ("down", "up")

    def sql(self, way: str) -> str:
        if way == "down":
            # containment is what the index of the column answers
            found = " OR ".join(f"t.{self.column} @> {_containing(path)}" for path in self.paths)
            starts = _starts(self.above, self.below, way)
            return f"SELECT '{self.below}'::text AS kind, t.id FROM {self.table} t WHERE {starts} AND ({found})"  # noqa: S608
        paths = ", ".join(f"('$.{path} ? (@.type() == \"number\")'::jsonpath)" for path in self.paths)
        named = f"(VALUES {paths}) AS p (path), jsonb_path_query(t.{self.column}, p.path) AS said (id)"
        where = f"r.kind = '{self.below}' AND t.id = r.id"
        found = f"'{self.above}'::text AS kind, (said.id #>> '{{}}')::bigint"
        return f"SELECT {found} FROM {self.table} t, {named} WHERE {where}"  # noqa: S608


def _starts(kind: str, found: str, way: str) -> str:
    """The SQL of the edges that start at rows of this kind, or at its stand-in: see `NARROWED`."""
    stand_in, followed = NARROWED.get(kind, ("", ()))
    also = f", '{stand_in}'" if way == "down" and found in followed else ""
    return f"r.kind IN ('{kind}'{also})"


def _containing(path: str) -> str:
    """`judges[*].version` as the document {"judges": [{"version": r.id}]}."""
    made = "to_jsonb(r.id)"
    for part in reversed(path.split(".")):
        name, listed = part.removesuffix("[*]"), part.endswith("[*]")
        made = f"jsonb_build_object('{name}', {f'jsonb_build_array({made})' if listed else made})"
    return made


def _first_slot(column: str) -> str:
    """The first slot of a run that holds the row stands for all: so each run comes once, and a bounded read stops early."""
    same = f"s.run_id = t.run_id AND s.{column} = t.{column}"
    return f"t.id = (SELECT min(s.id) FROM experiments_runslot s WHERE {same})"  # noqa: S608  texts of ours


NARROWED = {"version": ("held", ("run", "evaluation", "job")), "project": ("read", ("evaluation",))}
"""For a kind, its stand-in on the way down, and the kinds that are followed from the stand-in alone. `held` is a version that is known to hold
an example or a label: only the rows that use it as it is are followed, since others may be made without the example. `read` is a project of
whose answers one is the start: only the evaluations that read the project are followed."""
KEPT = """annotation_publishedcase c ON c.publication_id = p.id AND c.fate = 'kept' AND c.answers > 0
    JOIN annotation_assignment s ON s.task_id = c.task_id
    JOIN annotation_answer a ON a.assignment_id = s.id AND a.submitted_at <= p.created_at"""
OF_ANSWERS = """annotation_answer a JOIN annotation_assignment s ON s.id = a.assignment_id
    JOIN annotation_publishedcase c ON c.task_id = s.task_id AND c.fate = 'kept' AND c.answers > 0
    JOIN annotation_publication p ON p.id = c.publication_id AND a.submitted_at <= p.created_at"""
OF_ROLLOUTS = """experiments_rollout t JOIN experiments_run n ON n.id = t.run_id
    JOIN datasets_datasetversion v ON v.id = n.dataset_version_id
    JOIN datasets_example e ON e.dataset_id = v.dataset_id AND e.key = t.example_key
    JOIN datasets_versionmember m ON m.example_id = e.id AND m.version_id = v.id"""
SHARED = """experiments_sharedrun s JOIN experiments_sharelink l ON l.id = s.link_id AND l.withdrawn_at IS NULL
    JOIN reports_sharedreport h ON h.link_id = l.id JOIN reports_reportpageversion v ON v.id = h.version_id"""
JUDGES = (
    *(
        "judges[*].version",
        "judge",
        "rubric_judge",
        "generator",
        "matcher",
        "necessity",
        "second_matcher",
        "decomposer",
    ),
    *("flaws", "pairwise", "lister", "quality", "likert", "pointwise"),
)
MODELS = ("models[*].model", "writers[*].model")
RUNS = ("responses[*].run",)
PROJECTS = ("project", "grading", "comparing")
VERSION, EVALUATION = "datasets_datasetversion", "evaluation_evaluation"

EDGES: tuple[Relation | NamedRelation, ...] = (
    Relation(
        "person",
        "publication",
        f"annotation_participant m JOIN annotation_publication p ON p.project_id = m.project_id JOIN {KEPT}",
        "m.user_id",
        "p.id",
        "s.user_id = m.user_id",
        many=True,
    ),
    Relation(
        "guidelines",
        "publication",
        f"annotation_guidelines g JOIN annotation_publication p ON p.project_id = g.project_id JOIN {KEPT}",
        "g.id",
        "p.id",
        "a.guidelines_id = g.id",
        many=True,
    ),
    Relation("answer", "publication", OF_ANSWERS, "a.id", "p.id", many=True, ways=("down",)),
    Relation(
        "person",
        "answer",
        "annotation_answer a JOIN annotation_assignment s ON s.id = a.assignment_id",
        "s.user_id",
        "a.id",
        ways=("up",),
    ),
    Relation("guidelines", "answer", "annotation_answer a", "a.guidelines_id", "a.id", ways=("up",)),
    Relation("project", "answer", "annotation_answer a", "a.project_id", "a.id", ways=("up",)),
    Relation("version", "project", "annotation_project t", "t.version_id", "t.id"),
    Relation("project", "publication", "annotation_publication t", "t.project_id", "t.id"),
    Relation("publication", "version", "annotation_publication t", "t.id", "t.version_id"),
    NamedRelation("version", "version", VERSION, "lineage", ("base_id", "version_id")),
    NamedRelation("run", "version", VERSION, "lineage", ("run",)),
    NamedRelation("evaluation", "version", VERSION, "lineage", ("evaluation",)),
    Relation("version", "run", "experiments_run t", "t.dataset_version_id", "t.id"),
    Relation("version", "evaluation", f"{EVALUATION} t", "t.dataset_version_id", "t.id"),
    Relation("version", "job", "weights_weightsjob t", "t.version_id", "t.id"),
    Relation("judge", "run", "experiments_runjudge t", "t.version_id", "t.run_id"),
    Relation("judge", "run", "experiments_runslot t", "t.judge_id", "t.run_id", _first_slot("judge_id")),
    NamedRelation("judge", "evaluation", EVALUATION, "config", JUDGES),
    Relation("model", "run", "experiments_run t", "t.model_id", "t.id"),
    Relation("model", "run", "experiments_runslot t", "t.model_id", "t.run_id", _first_slot("model_id")),
    Relation("model", "model", "inference_registeredmodel t", "t.base_id", "t.id"),
    Relation("model", "job", "weights_weightsjob t", "t.model_id", "t.id"),
    Relation(
        "model",
        "judge",
        "inference_endpoint e JOIN judging_judgeversion t ON t.endpoint_id = e.id",
        "e.registered_model_id",
        "t.id",
    ),
    NamedRelation("model", "evaluation", EVALUATION, "config", MODELS),
    Relation("job", "evaluation", "evaluation_evaluation_jobs t", "t.weightsjob_id", "t.evaluation_id"),
    Relation("run", "model", "experiments_artifact t", "t.run_id", "t.registered_id"),
    Relation("run", "run", "experiments_run t", "t.forked_from_id", "t.id"),
    NamedRelation("run", "evaluation", EVALUATION, "config", RUNS),
    NamedRelation("project", "evaluation", EVALUATION, "config", PROJECTS),
    Relation("run", "study", "experiments_claimrun t", "t.run_id", "t.study_id", many=True),
    Relation("run", "rollout", "experiments_rollout t", "t.run_id", "t.id", ways=("up",)),
    Relation("example", "rollout", OF_ROLLOUTS, "e.id", "t.id", ways=("up",)),
    Relation("run", "report", "reports_reportsource t", "t.run_id", "t.report_id", many=True),
    Relation("run", "report", SHARED, "s.run_id", "v.report_id", many=True),
    Relation("rollout", "report", "reports_reportsource t", "t.rollout_id", "t.report_id"),
    Relation("evaluation", "report", "reports_reportsource t", "t.evaluation_id", "t.report_id"),
    Relation("job", "version", "experiments_claimtask t", "t.job_id", "t.version_id"),
    Relation("job", "model", "experiments_claimtask t", "t.job_id", "t.model_id"),
)


def steps(way: str, most: int | None = None) -> str:
    """One step from `r` over every edge; at most `most` rows over each, so that from a base model with which all runs begin nobody reads all
    runs to show some."""
    found = [edge.sql(way) for edge in EDGES if way in edge.ways]
    return "\nUNION ALL ".join(found if most is None else [f"({each} LIMIT {most})" for each in found])
