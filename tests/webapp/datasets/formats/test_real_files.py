"""The public files as they were published. Each is recognised, imported completely, and gives its published numbers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.shared import SHARED, needs_shared
from trainer.contracts import Example
from trainer.contracts.verdict import Verdict
from trainer.metrics.agreement import UnitRating, alpha, cohen_pairs, tabulate
from trainer.rubrics.score import report_score
from trainer.verifiers import verify
from webapp.datasets import queries
from webapp.datasets.formats.importers import detect, files_for, recognise
from webapp.datasets.ingest import services
from webapp.datasets.models import DatasetVersion, ImportJob
from webapp.files.bundle import Bundle
from webapp.files.records import RowProblem

pytestmark = needs_shared

FORMATS = {
    "biggen_rubrics": "biggen",
    "followbench": "followbench",
    "healthbench_sample": "healthbench",
    "hh_rlhf": "hh_rlhf",
    "ifbench": "ifbench",
    "judgebench": "judgebench",
    "pandalm": "pandalm",
    "paperbench": "paperbench",
    "prometheus_eval": "prometheus",
    "ukpconvarg1": "ukpconvarg1",
    "writingbench": "writingbench",
}
# published tables of judges, and lists of papers, which hold no examples
NO_DATA = ("judge_eval_tables", "splits")


def data_files() -> list[Path]:
    found = [file for file in sorted(SHARED.rglob("*")) if file.is_file() and file.suffix != ".md"]
    return [file for file in found if not set(NO_DATA) & set(file.parts)]


def examples(name: str) -> list[Example]:
    """All rows of a file, or of the files in a folder, as the importer makes them. No row is refused."""
    bundle = Bundle(SHARED / name)
    importer = recognise(bundle)
    rows: list[Any] = []
    for each in files_for(bundle, importer):
        with bundle.opened(each) as (stream, _):
            rows += [row for _, row in importer.read(stream, each, None, bundle.beside(each))]
    assert not [row for row in rows if isinstance(row, RowProblem)]
    return rows


@pytest.mark.parametrize("file", data_files(), ids=lambda file: str(file.relative_to(SHARED)))
def test_a_file_is_recognised_as_what_its_folder_holds(file):
    bundle = Bundle(file)
    head = bundle.head(file.name)
    found = detect(head)
    assert found.name == FORMATS[file.relative_to(SHARED).parts[0]]
    assert found.sniff(head) > 0.9


def test_no_two_formats_are_sure_of_one_file():
    from webapp.datasets.formats.importers import REGISTRY

    for file in data_files():
        head = Bundle(file).head(file.name)
        assert len([name for name, each in REGISTRY.items() if each.sniff(head) > 0.9]) == 1, file


IMPORTED = {  # path -> counts of the version
    "biggen_rubrics": {"examples": 765, "criteria": 765},
    "followbench": {"examples": 944, "criteria": 820},
    "healthbench_sample": {"examples": 30, "criteria": 352},
    "hh_rlhf": {"examples": 2312, "preferences": 2312},
    "ifbench": {"examples": 300, "criteria": 344},
    "ifbench/eval_results_strict.jsonl": {"examples": 294, "responses": 294},
    "ifbench/eval_results_loose_flags.jsonl": {"examples": 294, "responses": 294},
    "judgebench": {"examples": 620, "responses": 1240, "preferences": 620 + 2 * 2370},
    "judgebench/judgments.jsonl": {"examples": 2370, "preferences": 3 * 2370},
    "judgebench/judge_rationales_claude3haiku.jsonl": {"examples": 270},
    "pandalm": {"examples": 999, "preferences": 2997},
    "pandalm/gpt-3.5-turbo-testset-v1.json": {"examples": 999, "preferences": 999},
    "pandalm/pandalm-7b-testset-v1.json": {"examples": 999, "preferences": 999},
    "paperbench": {"examples": 28, "rubrics": 28},
    "prometheus_eval": {"examples": 541, "criteria": 541, "responses": 320 + 2 * 221},
    "ukpconvarg1": {"examples": 16_927, "preferences": 84_445, "repeated": 1370},  # a sample lies beside the whole file
    "ukpconvarg1/arguments.jsonl": {"examples": 1052},
    "ukpconvarg1/pairs_sample_3topics.jsonl": {"examples": 1370},
    "ukpconvarg1/ranking.tsv": {"examples": 1052},
    "ukpconvarg1/strict_labels.tsv": {"examples": 11_650, "preferences": 11_650},
    "writingbench": {"examples": 222, "criteria": 1110},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPORTED)
def test_it_is_imported_whole_and_comes_back_from_its_export_with_the_same_digest(team, tmp_path, name):
    job = run(team, SHARED / name, "real")
    assert job.state == ImportJob.State.FINISHED, (job.error, job.rejected[:3])
    assert job.format == FORMATS[name.split("/")[0]]
    assert IMPORTED[name].items() <= job.counts.items() and job.rejected_count == 0
    exported = tmp_path / "export.jsonl"
    exported.write_text("".join(line + "\n" for _, line in queries.stream_canonical(job.version)))
    again = run(team, exported, "again")
    assert again.version.digest == job.version.digest
    assert run(team, SHARED / name, "real").unchanged
    assert DatasetVersion.objects.count() == 2


def run(team, path: Path, name: str) -> ImportJob:
    job = services.start_import(team.researcher, path, name=name, queue=False)
    services.run_import(job.pk)
    job.refresh_from_db()
    return job


def test_tables_of_results_are_refused_with_the_reason():
    bundle = Bundle(SHARED / "paperbench/judge_eval_tables/perf_table.csv")
    with bundle.opened(bundle.names[0]) as (stream, _):
        rows = [row for _, row in recognise(bundle).read(stream, bundle.names[0])]
    assert rows and all("no column is mapped" in row.reason for row in rows)


def majority(example: Example) -> int | None:
    """The strength that most raters gave, or None if two strengths have the most votes."""
    votes = Counter(each.strength for each in example.preferences).most_common()
    return votes[0][0] if len(votes) == 1 or votes[0][1] > votes[1][1] else None


def test_pandalm_majorities_and_kappas():
    rows = examples("pandalm/testset-v1.json")
    counts = Counter({-2: 1, 2: 2}.get(majority(row) or 0, 0) for row in rows)
    assert [counts[label] for label in (0, 1, 2)] == [105, 422, 472]
    table = tabulate(UnitRating(row.key, p.rater, float(p.strength or 0)) for row in rows for p in row.preferences)
    kappas = {tuple(pair["raters"]): round(pair["value"], 4) for pair in cohen_pairs(table)}
    assert list(kappas.values()) == [0.8520, 0.8789, 0.8617]


@pytest.mark.parametrize(
    ("judge", "published"),
    [("gpt-3.5-turbo", (71.07, 58.79, 57.36, 57.55)), ("pandalm-7b", (66.77, 57.38, 57.50, 57.43))],
)
def test_pandalm_judges_score_as_published(judge, published):
    """An unreadable verdict is imported as missing. The published row counts it as a tie, and so does this test."""
    truth = {row.key: majority(row) or 0 for row in examples("pandalm/testset-v1.json")}
    judged = examples(f"pandalm/{judge}-testset-v1.json")
    pairs = [(truth[row.key.rpartition("/")[0]], row.preferences[0].strength or 0) for row in judged]
    hits = Counter(true for true, said in pairs if true == said)
    asked, given = Counter(true for true, _ in pairs), Counter(said for _, said in pairs)
    precision = [hits[label] / given[label] for label in (0, -2, 2)]
    recall = [hits[label] / asked[label] for label in (0, -2, 2)]
    f1 = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    found = [sum(hits.values()) / len(pairs), sum(precision) / 3, sum(recall) / 3, sum(f1) / 3]
    assert tuple(round(100 * value, 2) for value in found) == published


def test_what_pandalms_judge_garbled_is_missing_and_never_a_tie():
    verdicts = Counter(row.preferences[0].verdict for row in examples("pandalm/gpt-3.5-turbo-testset-v1.json"))
    assert verdicts == {"compared": 974, "cannot_assess": 25}


TABLE_3 = {
    "Skywork_Skywork-Reward-Gemma-2-27B": (59.74, 66.33, 83.93, 50.00, 64.29),
    "Skywork_Skywork-Reward-Llama-3.1-8B": (59.09, 64.29, 76.79, 50.00, 62.29),
    "internlm_internlm2-20b-reward": (62.34, 69.39, 66.07, 50.00, 63.43),
}
GROUPS = {"mmlu-pro": 0, "livebench-reasoning": 1, "livebench-math": 2, "livecodebench": 3}


@pytest.mark.parametrize("judge", TABLE_3)
def test_judgebench_table_3_from_the_imported_decisions(judge):
    right: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for row in examples("judgebench/judgments.jsonl"):
        if not row.key.endswith(judge) or "gpt-4o" not in row.responses[0].origin:
            continue
        gold, first, second = (each.strength or 0 for each in row.preferences)
        group = next(number for prefix, number in GROUPS.items() if row.domain.startswith(prefix))
        total[group] += 1
        right[group] += (first + second) * gold > 0  # the net vote over both orders, which the importer turns back
    shares = [right[group] / total[group] for group in range(4)] + [sum(right.values()) / sum(total.values())]
    assert tuple(round(100 * share, 2) for share in shares) == TABLE_3[judge]


def test_paperbench_has_8316_leaves_in_its_20_papers():
    papers = set((SHARED / "paperbench/splits/all.txt").read_text().split())
    rows = [row for row in examples("paperbench") if row.key in papers]
    assert len(rows) == 20
    assert sum(len(row.rubric.criteria) for row in rows) == 8316


def test_paperbench_grades_score_the_rubric_as_the_tree():
    rows = [row for row in examples("paperbench") if row.key.endswith("/graded")]
    assert len(rows) == 5 and sum(len(row.rubric.criteria) for row in rows) == 2693
    for row in rows:
        given = [Verdict.model_validate(each) for each in row.meta["verdicts"][0]["verdicts"]]
        assert report_score(row.rubric, given).score == pytest.approx(row.meta["score"])


def test_a_tree_is_kept_whole():
    file = SHARED / "paperbench/rubrics/bbox.json"
    [row] = examples("paperbench/rubrics/bbox.json")
    assert row.meta["tree"] == json.loads(file.read_text())
    assert len({criterion.id for criterion in row.rubric.criteria}) == 279  # although the file repeats an id


def test_ukp_majorities_equal_gold():
    rows = examples("ukpconvarg1/pairs_with_reasons.jsonl.gz")
    assert sum("gold" in row.meta for row in rows) == 16_081
    assert sum(len(row.preferences) == 4 for row in rows) == 190
    strength = {"a1": -2, "a2": 2, "equal": 0}
    decided = [(majority(row), strength[row.meta["gold"]]) for row in rows if "gold" in row.meta]
    decided = [(most, gold) for most, gold in decided if most is not None]
    assert (sum(most == gold for most, gold in decided), len(decided)) == (13_291, 14_001)
    assert all(p.reasons for row in rows for p in row.preferences)
    table = tabulate(UnitRating(row.key, p.rater, str(p.strength)) for row in rows for p in row.preferences)
    assert round(alpha(table, "nominal").value, 4) == 0.2668


def test_ukp_texts_come_from_the_file_of_arguments():
    texts = {
        (row.domain, row.responses[0].id): row.responses[0].text for row in examples("ukpconvarg1/arguments.jsonl")
    }
    assert len(texts) == 1052
    for row in examples("ukpconvarg1/pairs_sample_3topics.jsonl"):
        assert [each.text for each in row.responses] == [texts[row.domain, each.id] for each in row.responses]


def test_followbench_has_820_instructions_of_level_1_and_more():
    assert sum(row.meta["level"] >= 1 for row in examples("followbench")) == 820


def test_verifiers_of_ifbench_decide_as_its_own_checkers_did():
    decided = 0
    for row in examples("ifbench/eval_results_strict.jsonl"):
        recorded = {v["criterion_id"]: v["met"] for v in row.meta["verdicts"][0]["verdicts"]}
        for criterion in row.rubric.criteria:
            if criterion.verifier:
                decided += 1
                assert verify(criterion.verifier, row.responses[0].text).met == recorded[criterion.id], criterion.text
    assert decided == 21


def test_every_ifbench_constraint_is_said_in_words():
    for row in examples("ifbench/IFBench_test.jsonl"):
        for criterion in row.rubric.criteria:
            assert "{" not in criterion.text and "constraint" not in criterion.text
    missing = [c.text for r in examples("ifbench/IFBench_test.jsonl") for c in r.rubric.criteria if "…" in c.text]
    assert not missing


def test_prometheus_scores_and_feedback_stay_together():
    rows = list(examples("prometheus_eval/vicuna_eval.json"))
    ratings = [rating for row in rows for rating in row.meta["ratings"]]
    assert len(ratings) == 960 and all(rating["feedback"] for rating in ratings)
    assert Counter(rating["score"] for rating in ratings) == {4: 489, 5: 338, 3: 80, 2: 41, 1: 12}
    assert all(set(row.meta["levels"]["c1"]) == set("12345") for row in rows)
