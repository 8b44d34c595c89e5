"""A plausible run of 60 steps in the form in which the ingest stores it: rising curves, a narrowing spread, rollouts."""

import math
import random
from datetime import UTC, datetime, timedelta

from webapp.experiments.models import Artifact, LogLine, MetricPoint, Rollout, Run

EDGES = [round(0.5 + 0.05 * i, 2) for i in range(21)]
CRITERIA = (
    ("Gives exactly three bullet points", 5, "bullets"),
    ("Stays under 40 words", 3, "words"),
    ("Names the season in the first sentence", 4, "must_contain"),
    ("Apologises or mentions being an AI", -4, "must_not_contain"),
    ("Ends with a question to the reader", 2, "ends_with"),
)
PROMPTS = (
    "Suggest what to plant on a shaded balcony in early autumn. Three bullets, no more than 40 words.",
    "Explain to a new colleague why we write tests before a release, as three short bullets.",
    "A friend has an hour in Lisbon. Tell them how to spend it, in three bullets, and ask what they like.",
    "List three things to check before lending somebody a bicycle. Keep it under 40 words.",
)
TEXT = """Autumn suits ferns . - Pick hardy greens - Keep the soil moist - Add mulch before frost . What light do you have ?
I am sorry , but as a model I would suggest a short walk along the river and then a coffee near the old market"""
WORDS = TEXT.split()


def seed_run(run: Run, steps: int = 60, state: str = "running", seed: int = 0, brief: bool = False) -> Run:
    """Fills `run` with metrics up to `steps`, rollouts of a few of them, a log and a checkpoint. A `brief` run has neither rollouts
    nor metrics of its times and its machine.
    """
    rng = random.Random(seed)  # noqa: S311 - a picture, not a secret
    start = datetime.now(UTC) - timedelta(seconds=9 * steps)
    points = [
        p for step in range(1, steps + 1) for p in _points(run, step, steps, start + timedelta(seconds=9 * step), rng)
    ]
    MetricPoint.objects.bulk_create(p for p in points if not (brief and p.key.startswith("perf/")))
    if not brief:
        for step in sorted({1, steps // 2, steps - 1, steps}):
            Rollout.objects.bulk_create(_rollouts(run, step, "train", step / 60, rng))
        Rollout.objects.bulk_create(_rollouts(run, steps, "eval", steps / 60, rng))
    LogLine.objects.bulk_create(_log(run, steps, start))
    Artifact.objects.create(
        run=run,
        step=steps // 10 * 10,
        role="checkpoint",
        path=f"checkpoints/step-{steps:06d}",
        bytes=18_874_368,
        digest="9f2c" * 16,
    )
    last = {p.key: p.value for p in points if p.value is not None}
    Run.objects.filter(id=run.id).update(
        state=state,
        step=steps,
        phase="rollouts" if state == "running" else "",
        phase_done=21,
        phase_total=32,
        eta_s=252.0 if state == "running" else None,
        started_at=start,
        first_metric_at=start + timedelta(seconds=31),
        heartbeat_at=datetime.now(UTC),
        ended_at=None if state == "running" else datetime.now(UTC),
        summary={**last, "eval/rubric_score:first": 0.312},
    )
    run.refresh_from_db()
    return run


def _points(run, step, steps, time, rng):
    t = step / 60
    rise = 1 / (1 + math.exp(-8 * (t - 0.4)))
    noise = lambda size: rng.gauss(0, size)  # noqa: E731
    counts = [
        max(0, int(4000 * math.exp(-(((edge - 0.975) / (0.05 + 0.08 * t)) ** 2)) + abs(noise(12))))
        for edge in EDGES[:-1]
    ]
    masked = [n if 0.8 <= edge <= 1.2 else 0 for n, edge in zip(counts, EDGES[:-1], strict=True)]
    values = {
        "reward/mean": 0.31 + 0.28 * rise + noise(0.025),
        "reward/std": 0.19 - 0.07 * t + noise(0.012),
        "reward/rubric": 0.31 + 0.28 * rise + noise(0.02),
        "reward/overlong": -0.09 + 0.07 * t + noise(0.006),
        "policy/entropy": 2.1 - 0.9 * rise + noise(0.04),
        "policy/kl": 0.002 + 0.12 * t**1.5 + abs(noise(0.002)),
        "policy/kl_old": abs(noise(0.001)),
        "policy/clip_share": 0.02 + 0.03 * t + abs(noise(0.008)),
        "policy/loss": noise(0.02),
        "policy/grad_norm": 0.6 + 0.2 * t + abs(noise(0.15)),
        "policy/ratio_raw": 1 + noise(0.012),
        "policy/ratio_masked": 1 + noise(0.004),
        "optim/lr": 2e-4,
        "rollout/length": 58 - 20 * rise + noise(1.5),
        "rollout/truncated_share": max(0, 0.55 - 0.5 * rise + noise(0.03)),
        "rollout/excluded": float(rng.random() < 0.08),
        "rollout/flat_groups": float(rng.choice([0, 0, 0, 1])),
        "scaffold/ratio": 0.5 / (1 + math.exp(20 * (t - 0.2))),
        "perf/rollout_tokens_per_s": 212 + noise(9),
        "perf/train_tokens_per_s": 640 + noise(22),
        "perf/step_s": 8.8 + noise(0.4),
        "perf/rollout_s": 5.1 + noise(0.3),
        "perf/reward_s": 0.6 + abs(noise(0.3)),
        "perf/learner_s": 3.0 + noise(0.2),
        "perf/cores": 1.7 + noise(0.1),
        "perf/memory_gib": 2.1 + t / 10,
        "perf/machine_busy": 0.9 + noise(0.02),
        "perf/machine_memory": 0.4 + t / 50,
        "perf/disk_read": 0.2 + abs(noise(0.2)),
        "perf/disk_written": 3.0 + noise(0.5),
        "perf/network_received": 0.1 + abs(noise(0.05)),
        "perf/network_sent": 0.4 + abs(noise(0.1)),
    }
    for i, (_, points, name) in enumerate(CRITERIA):
        values[f"criterion/{name}"] = min(
            1, max(0, (0.2 + 0.11 * i + 0.5 * rise if points > 0 else 0.5 - 0.45 * rise) + noise(0.05))
        )
    if step % 10 == 0 or step == 1:
        values |= {"eval/rubric_score": 0.312 + 0.26 * rise + noise(0.012), "eval/length": 52 - 15 * rise}
        values |= {"perf/evaluation_s": 6.0 + noise(0.5), "perf/saving_s": 0.4 + abs(noise(0.1))}
    histograms = {"policy/ratio_raw": counts, "policy/ratio_masked": masked}
    for key, value in values.items():
        histogram = {"edges": EDGES, "counts": histograms[key]} if key in histograms else None
        yield MetricPoint(run=run, key=key, step=step, value=value, histogram=histogram, time=time)


def _rollouts(run, step, phase, t, rng):
    for group, prompt in enumerate(PROMPTS):
        rewards = []
        contents = []
        for index in range(4 if phase == "train" else 1):
            contents.append(content(step, phase, group, index, prompt, t, rng))
            rewards.append(contents[-1]["reward"])
        mean = sum(r or 0 for r in rewards) / len(rewards)
        for index, item in enumerate(contents):
            advantage = None if item["reward"] is None else round((item["reward"] - mean) / 0.3, 3)
            item["advantage"] = advantage if phase == "train" else None
            yield Rollout(
                run=run,
                step=step,
                phase=phase,
                group=group,
                index=index,
                example_key=item["example_key"],
                reward=item["reward"],
                advantage=item["advantage"],
                content=item,
            )


def content(step, phase, group, index, prompt, t, rng):
    """A `RolloutRecord` as JSON."""
    tokens = [" " * bool(i) + word for i, word in enumerate(rng.choices(WORDS, k=rng.randint(18, 44)))]
    logprobs = [round(-rng.expovariate(1.2), 4) for _ in tokens]
    criteria, score, positive = [], 0.0, sum(p for _, p, _ in CRITERIA if p > 0)
    for i, (text, points, _) in enumerate(CRITERIA):
        met = rng.random() < (0.35 + 0.5 * t if points > 0 else 0.5 - 0.4 * t)
        verdict = {
            "criterion_id": f"c{i}",
            "met": met,
            "source": "verifier",
            "note": "found 2 bullets" if i == 0 and not met else "",
            "raw": "",
        }
        if group == 3 and index == 2 and i == 2:
            verdict |= {"met": None, "note": "the language of the response could not be told"}
        score += points * bool(verdict["met"])
        criteria.append({"text": text, "points": points, "kind": "hard" if i < 2 else "principle", "verdict": verdict})
    excluded = "a criterion has no verdict" if group == 3 and index == 2 else ""
    scaffold = (
        "Make sure that your answer:\n- " + "\n- ".join(c[0] for c in CRITERIA[:3])
        if phase == "train" and index < 2
        else ""
    )
    return {
        "phase": phase,
        "example_key": f"demo-{group:03d}",
        "group": group,
        "index": index,
        "prompt": prompt,
        "scaffold": scaffold,
        "scaffold_shown": 3 - index if scaffold else 0,
        "response": "".join(tokens),
        "finish_reason": "stop" if len(tokens) < 40 else "length",
        "stretches": [{"version": 11, "start": 0, "end": 9}, {"version": 12, "start": 9, "end": len(tokens)}],
        "reward": None if excluded else round(score / positive, 4),
        "components": {"rubric": round(score / positive, 4), "overlong": 0.0},
        "advantage": None,
        "criteria": criteria,
        "excluded": excluded,
        "tokens": tokens,
        "logprobs": logprobs,
        "ratios": [round(math.exp(rng.gauss(0, 0.12)), 4) for _ in tokens],
        "mask": [float(rng.random() > 0.04) for _ in tokens],
    }


def _log(run, steps, start):
    yield LogLine(
        run=run,
        time=start,
        level="info",
        message="Model smollm2-135m-instruct loaded: 134.5 M parameters, 4.9 M trained",
    )
    for step in range(1, steps + 1):
        time = start + timedelta(seconds=9 * step)
        yield LogLine(
            run=run,
            time=time,
            step=step,
            level="info",
            message=f"step {step}: reward {0.31 + 0.004 * step:.3f}, 32 responses in 5.1 s, update in 3.4 s",
        )
        if step % 10 == 0:
            yield LogLine(
                run=run,
                time=time,
                step=step,
                level="info",
                message=f"checkpoint checkpoints/step-{step:06d} written (18.9 MB)",
            )
        if step == 23:
            yield LogLine(
                run=run,
                time=time,
                step=step,
                level="warning",
                message="group 2: all 8 rewards are equal; it gives no gradient",
            )
