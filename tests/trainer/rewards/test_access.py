"""The file of `--judges`: its contents, and the message for each mistake."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trainer import cli
from trainer.config.rewards.parts import HttpPart, JudgePart, RubricPart
from trainer.contracts import JudgeGrant
from trainer.judges.chat import Target
from trainer.judges.local import LocalTarget
from trainer.judges.spec import digest
from trainer.rewards.access import AccessInvalid, granted, read

ENDPOINT = {"url": "http://127.0.0.1:8001/v1", "model": "grader"}
SPEC = {"kind": "criterion"}


def written(folder: Path, **content: Any) -> Path:
    path = folder / "judges.json"
    path.write_text(json.dumps(content))
    return path


def judges(folder: Path, **entry: Any) -> Path:
    return written(folder, judges={"Grader v1": entry})


def test_a_judge_over_an_endpoint_with_limits_prices_and_a_key_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_KEY", "sk-1")
    limits = {"concurrency": 4, "requests_per_minute": 90, "timeout_s": 7.5, "retries": 0, "supports_schema": True}
    endpoint = {**ENDPOINT, **limits, "key_env": "GRADER_KEY", "price_prompt": 0.1, "price_completion": 2}
    found = read(judges(tmp_path, spec=SPEC, endpoint=endpoint)).judges["Grader v1"]
    assert isinstance(found.target, Target) and found.target.key == "sk-1"
    assert {name: getattr(found.target, name) for name in limits} == limits
    prices = found.target.prices
    assert prices and (prices.prompt, prices.completion) == (Decimal("0.1"), Decimal(2))
    assert found.key == digest(found.spec, "http://127.0.0.1:8001/v1 grader"), "verdicts belong to whom it asks"


def test_a_judge_with_weights_of_this_machine_and_a_service(tmp_path: Path) -> None:
    services = {"mine": {"url": "https://rewards.example.org/score"}}
    path = written(tmp_path, judges={"Here v1": {"spec": SPEC, "model": "/models/judge"}}, services=services)
    access = read(path)
    target = access.judges["Here v1"].target
    assert isinstance(target, LocalTarget) and target.model == "/models/judge" and target.yes_no
    assert access.endpoints["mine"].url == "https://rewards.example.org/score"


def test_a_judge_of_a_run_is_loaded_with_its_adapters() -> None:
    grants = {"J v1": JudgeGrant(spec=SPEC, key="k", local="/models/base", adapters=("/one", "/two"))}
    target = granted(grants, "http://x", "t", "http://x/v").judges["J v1"].target
    assert isinstance(target, LocalTarget) and (target.model, target.adapters) == ("/models/base", ("/one", "/two"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"judge": {}}, "unknown key 'judge'"),
        (
            {"judges": {"J v1": {"spec": {"kind": "oracle"}, "endpoint": ENDPOINT}}},
            "judges.J v1.spec.kind: must be one of",
        ),
        ({"judges": {"J v1": {"spec": SPEC}}}, "judges.J v1: give either an endpoint or the directory"),
        ({"judges": {"J v1": {"spec": SPEC, "endpoint": ENDPOINT, "model": "/m"}}}, "give either an endpoint"),
        ({"judges": {"J v1": {"spec": SPEC, "endpoint": {"url": "x"}}}}, "judges.J v1.endpoint.model: is missing"),
        ({"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "key": "sk"}}}}, "unknown key 'key'"),
        (
            {"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "concurrency": "8"}}}},
            "concurrency: '8' cannot be used",
        ),
        (
            {"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "retries": True}}}},
            "retries: True cannot be used",
        ),
        (
            {"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "timeout_s": -1}}}},
            "timeout_s: -1 cannot be used",
        ),
        (
            {"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "price_prompt": 1}}}},
            "are two numbers per million",
        ),
        (
            {"judges": {"J v1": {"spec": SPEC, "endpoint": {**ENDPOINT, "key_env": "NOT_SET_HERE"}}}},
            "NOT_SET_HERE is not set",
        ),
        ({"judges": {"J v1": "grader"}}, "judges.J v1: must be an object"),
        ({"services": {"mine": {}}}, "services.mine.url: is missing"),
    ],
)
def test_a_mistake_is_told_at_its_entry(tmp_path: Path, content: dict[str, Any], words: str) -> None:
    path = written(tmp_path, **content)
    with pytest.raises(AccessInvalid) as refused:
        read(path)
    assert words in str(refused.value) and str(refused.value).startswith(str(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessInvalid, match="No such file"):
        read(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(AccessInvalid, match="not JSON"):
        read(tmp_path / "broken.json")


def test_parts_that_ask_for_what_the_file_has_not_are_named(tmp_path: Path) -> None:
    access = read(judges(tmp_path, spec=SPEC, endpoint=ENDPOINT))
    parts: list[Any] = [
        RubricPart(judge="Grader v1"),
        RubricPart(judge="Grader v2", name="second"),
        JudgePart(judge="Grader v1", name="third", protocol="pointwise"),
        HttpPart(endpoint="mine", name="fourth"),
    ]
    found = {problem.path: problem.message for problem in access.problems(parts)}
    assert found.keys() == {"rewards.1.judge", "rewards.2.judge", "rewards.3.endpoint"}
    assert "no judge 'Grader v2' was given" in found["rewards.1.judge"]
    assert "this needs 'pointwise'" in found["rewards.2.judge"]


@pytest.mark.parametrize(
    ("recipe", "config", "fields"),
    [
        (
            "rubric_writer",
            {"reward": {"by": "likert", "judge": "Grader v1", "quality_judge": "Reader v1", "matcher": "words"}},
            {"reward.judge": "Grader v1", "reward.quality_judge": "Reader v1"},
        ),
        (
            "policy",
            {
                "rewards": [
                    {"kind": "overlong", "soft_tokens": 4, "shadow": True},
                    {"kind": "rubric", "judge": "Grader v1"},
                ]
            },
            {"rewards.1.judge": "Grader v1"},
        ),
        ("sft", {"evaluation": {"generate": True, "judge": "Grader v1"}}, {"evaluation.judge": "Grader v1"}),
    ],
)
def test_a_run_without_a_judge_that_its_config_names_is_refused_at_the_field(
    recipe: str, config: dict[str, Any], fields: dict[str, str], tmp_path: Path
) -> None:
    for name, text in (("config.json", json.dumps(config)), ("data.jsonl", "")):
        (tmp_path / name).write_text(text)
    paths = {"--config": "config.json", "--data": "data.jsonl", "--model": "model", "--out": "run"}
    named = [word for option, name in paths.items() for word in (option, str(tmp_path / name))]
    with pytest.raises(SystemExit) as refused:
        cli.run(["--recipe", recipe, *named])
    lacks = [f"{path}: no judge {name!r} was given to the run (--judges FILE)" for path, name in fields.items()]
    assert str(refused.value).splitlines() == lacks
