"""Runs in autorubric's own environment: `PYTHON -m benchmarks.autorubric_client URL MATERIAL`; prints one JSON object.

Grades the responses of MATERIAL (a JSON file: criteria, and responses each with its question) through autorubric, once
with a call per criterion and once with a call per response, and says how many seconds each took and how many verdicts
came out. Imports nothing of ours.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

IN_FLIGHT = 200


def main() -> None:
    url, material = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices
    print(json.dumps({calls: asyncio.run(grade(url, material, calls)) for calls in ("per_criterion", "per_item")}))


async def grade(url: str, material: dict[str, Any], calls: str) -> dict[str, float]:
    from autorubric import LLMConfig, Rubric
    from autorubric.graders import CriterionGrader

    config = LLMConfig(
        model=f"openai/peer-{calls}",
        api_base=url,
        api_key="none",
        temperature=0.0,
        max_parallel_requests=IN_FLIGHT,
    )
    grader = CriterionGrader(judge_model_config=config, llm_calls=calls)
    rubric = Rubric.from_dict([{"weight": 1.0, "requirement": text} for text in material["criteria"]])

    async def one(row: dict[str, str]) -> int:
        report = await rubric.grade(to_grade=row["response"], grader=grader, query=row["question"])
        return sum(1 for each in report.report or () if "MET" in str(each.final_verdict))

    await one(material["responses"][0])  # loading at the first call is not measured
    started = time.perf_counter()
    verdicts = await asyncio.gather(*(one(row) for row in material["responses"]))
    return {"seconds": time.perf_counter() - started, "verdicts": sum(verdicts)}


if __name__ == "__main__":
    main()
