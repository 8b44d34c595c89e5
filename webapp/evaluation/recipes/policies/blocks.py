"""The tables and charts of a policy evaluation."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from trainer.contracts import Rubric
from trainer.contracts.plurals import with_noun
from trainer.metrics import policy as bench
from trainer.metrics.compare import keyed_difference, unpaired_difference
from trainer.metrics.estimate import Estimate, bootstrap_mean, proportion
from trainer.metrics.ranking import Comparison, bradley_terry
from trainer.rubrics import report_score

from ... import report as r
from ..base import tag

if TYPE_CHECKING:
    from .policy import ScoredAnswer

Models = Mapping[str, Sequence["ScoredAnswer"]]
Outcomes = Sequence[tuple[str, str, str, int | None]]
KS = (1, 2, 4, 8, 16, 32, 64)
SEVERAL = [
    ("Model", ""),
    ("k", "most scored responses that a prompt has"),
    ("Avg@k success", "mean over prompts of the share of responses that succeed"),
    ("pass@k", "prompts with a success among k, unbiased; those with fewer scored responses are missing"),
    ("Avg@k score", "mean over prompts of the mean clipped score"),
    ("Best of k", "expected best clipped score"),
]
REJECTION = [
    ("Model", ""),
    ("Responses at most", "most scored responses that a prompt has"),
    ("Score kept", "expected clipped score of the first success, or of the last response if none succeeds"),
    ("Responses drawn", "expected number until the first success"),
    ("Best of as many", "expected best clipped score of all of them"),
]
MOST_CRITERIA = 60
MOST_CHANGED = 20
CHANGED = "Changed most"
AGAINST = {"won": "won against", "tied": "tied with", "lost": "lost to", "no outcome": "no outcome with"}
# outcomes of the first and of the second, by the side that is better
OUTCOMES = {-1: ("won", "lost"), 0: ("tied", "tied"), 1: ("lost", "won"), None: ("no outcome", "no outcome")}


def scores(rows: Sequence["ScoredAnswer"]) -> dict[str, Estimate]:
    return bench.rubric_scores([each.value for each in rows], [each.key for each in rows])


def coverage(answered: Sequence["ScoredAnswer"]) -> list[tuple[str, r.Cell]]:
    lost = sum(each.value is None for each in answered)
    partial = sum(bool(each.score and each.score.partial) for each in answered)
    undecided = sum(verdict.met is None for each in answered for verdict in each.verdicts)
    return [
        ("Models", r.count(len({each.model for each in answered}))),
        ("Prompts", r.count(len({each.key for each in answered}))),
        ("Responses", r.count(len(answered))),
        ("Without a score", r.count(lost, "no score", tone="warn" if lost else "")),
        ("Partial scores", r.count(partial, "partial", tone="warn" if partial else "")),
        ("Undecided criteria", r.count(undecided, "undecided", tone="warn" if undecided else "")),
    ]


def table(by_model: Models, found: Mapping[str, Mapping[str, Estimate]]) -> r.Table:
    first = next(iter(by_model))
    in_tokens = all(each.tokens is not None for rows in by_model.values() for each in rows)
    rows = []
    for name, answered in by_model.items():
        mine = tag("model", name)
        lengths = [(each.tokens or 0) if in_tokens else len(each.text) for each in answered]
        length = bench.mean_length(lengths, [each.key for each in answered])
        cells = [r.text(name, mine), r.count(len(answered), mine)]
        cells += [r.estimate(found[name][kind], mine) for kind in ("raw", "clipped")]
        if name == first:
            cells.append(r.number(None, why="the first model"))
        else:
            cells.append(r.estimate(_difference(by_model[first], answered), mine, unit="gap"))
        rows.append([*cells, r.estimate(length, mine, unit="count")])
    columns = [
        ("Model", ""),
        ("Responses", ""),
        ("Raw score", "met points over positive points; may be negative"),
        ("Clipped", "the raw score within 0 and 1"),
        ("Difference", f"clipped mean of each prompt minus that of {first}, paired by prompt"),
        ("Length", "tokens" if in_tokens else "characters"),
    ]
    return r.Table("Rubric scores", columns, rows, "Responses to one prompt are resampled together.")


def by_prompt(answered: Sequence["ScoredAnswer"]) -> dict[str, float | None]:
    """Mean clipped score of each prompt; None if no response has a score."""
    return {key: sum(values) / len(values) if values else None for key, values in _scored(answered).items()}


def _difference(first: Sequence["ScoredAnswer"], second: Sequence["ScoredAnswer"]) -> Estimate:
    return keyed_difference(by_prompt(first), by_prompt(second))


def changed(by_model: Models) -> Iterator[r.Table]:
    """The prompts whose score changed most between the first model and the last."""
    if len(by_model) < 2:
        return
    names = list(by_model)
    before, after = by_prompt(by_model[names[0]]), by_prompt(by_model[names[-1]])
    both = [(key, a, b) for key, a in before.items() if a is not None and (b := after.get(key)) is not None]
    both.sort(key=lambda each: (-abs(each[2] - each[1]), each[0]))
    rows = [_change(by_model, names[0], names[-1], key) for key, a, b in both[:MOST_CHANGED] if a != b]
    same = sum(a == b for _, a, b in both)
    note = (
        f"Mean clipped score of each prompt's responses, from {names[0]} to {names[-1]}: of {with_noun(len(both), 'prompts')} with both "
        f"scores {len(both) - same:,} changed. A prompt leads to the responses side by side."
    )
    yield r.table(CHANGED, ["Prompt", names[0], names[-1], "Change"], rows, note)


def _change(by_model: Models, first: str, last: str, key: str) -> list[r.Cell]:
    values = {name: [each.clipped for each in by_model[name] if each.key == key] for name in (first, last)}
    here = tag("example", key)
    cells = [r.compared(key)]
    for name, found in values.items():
        known = [value for value in found if value is not None]
        mean = bootstrap_mean(known, len(found) - len(known), "no response has a score", share=True)
        cells.append(r.estimate(mean, tag("model", name), here))
    return [*cells, r.estimate(unpaired_difference(values[first], values[last]), here, unit="gap")]


def split(
    title: str, by_model: Models, of: Callable[["ScoredAnswer"], str], kind: str, least: int = 2
) -> Iterator[r.Table]:
    """The scores by a property of the prompts; nothing if these have fewer than `least` different values."""
    values = sorted({of(each) for rows in by_model.values() for each in rows} - {""})
    if len(values) < least:
        return
    rows = []
    for value in values:
        cells = [r.text(value, tag(kind, value))]
        for name, answered in by_model.items():
            mine = [each for each in answered if of(each) == value]
            cells.append(r.estimate(scores(mine)["clipped"], tag("model", name), tag(kind, value)))
        rows.append(cells)
    yield r.table(title, [kind.capitalize(), *by_model], rows, "Clipped scores.")


def splits(by_model: Models, trained: Models) -> Iterator[r.Table]:
    """`trained`: the responses that the runs among the models sampled to learn from, which no other number counts."""
    tables = list(split("Held out and training", by_model, lambda each: each.split, "split", least=1 if trained else 2))
    if any(trained.values()):
        cells = []
        for name in by_model:
            rows = trained.get(name, [])
            why = "not responses of a run" if name not in trained else "it had not learnt from any response yet"
            mine = tag("model", rows[0].model) if rows else ""
            cells.append(r.estimate(scores(rows)["clipped"], mine) if rows else r.number(None, why=why))
        for each in tables:
            each.rows.append([r.text("in training"), *cells])
            each.note += (
                " In training: the responses that a run sampled to learn from since its previous evaluation, at most the "
                "newest 1,000, with its scaffold and temperature, and with the run's scores."
            )
    yield from tables


def axes(by_model: Models) -> Iterator[r.Table]:
    """The score on the criteria of one tag alone, like HealthBench's axes; needs the rubrics of the dataset."""
    names = sorted({name for rows in by_model.values() for each in rows for name in each.axes})
    rows = []
    for axis in names[:MOST_CRITERIA]:
        cells = [r.text(axis, tag("axis", axis))]
        for name, answered in by_model.items():
            values, keys = [], []
            for each in answered:
                part = _part(each, axis)
                if part is not None:
                    values.append(
                        report_score(
                            part, [v for v in each.verdicts if v.criterion_id in {c.id for c in part.criteria}]
                        ).score
                    )
                    keys.append(each.key)
            found = bench.rubric_scores(values, keys)["clipped"]
            cells.append(r.estimate(found, tag("model", name), tag("axis", axis)))
        rows.append(cells)
    if rows:
        yield r.table("By axis", ["Axis", *by_model], rows, "Clipped score on the criteria that carry the tag.")


def _part(each: "ScoredAnswer", axis: str) -> Rubric | None:
    criteria = tuple(c for c in each.rubric.criteria if axis in c.tags) if each.rubric else ()
    return Rubric(criteria=criteria) if any(criterion.points > 0 for criterion in criteria) else None


def criteria(by_model: Models) -> Iterator[r.Table]:
    """The shares of responses that meet each criterion; the most frequent ones."""
    met: dict[str, dict[str, list[bool | None]]] = defaultdict(lambda: defaultdict(list))
    points: dict[str, float] = {}
    for name, answered in by_model.items():
        for each in answered:
            by_id = {criterion.id: criterion for criterion in each.rubric.criteria} if each.rubric else {}
            for verdict in each.verdicts:
                found = by_id[verdict.criterion_id]
                met[found.text][name].append(verdict.met)
                points[found.text] = found.points
    counts = Counter({text: sum(map(len, found.values())) for text, found in met.items()})
    rows = []
    for text, _ in counts.most_common(MOST_CRITERIA):
        cells = [r.text(text), r.number(points[text], "weight")]
        for name in by_model:
            cells.append(r.estimate(_share(met[text][name]), tag("model", name), tag("not met", text)))
        rows.append(cells)
    if rows:
        left = len(met) - len(rows)
        more = f" {left:,} rarer criteria are not shown; they are in the cases." if left else ""
        yield r.table(
            "By criterion", ["Criterion", "Points", *by_model], rows, f"Share of responses that meet it.{more}"
        )


def _share(found: Sequence[bool | None]) -> Estimate:
    known = [each for each in found if each is not None]
    return proportion(sum(known), len(known), len(found) - len(known), "no verdict")


def several(by_model: Models, threshold: float) -> Iterator[r.Table | r.Curve]:
    """Numbers over several responses to a prompt: their mean, the chance that one succeeds, the best of them."""
    scored = {name: list(_scored(rows).values()) for name, rows in by_model.items()}
    drawn = {name: max(map(len, found), default=0) for name, found in scored.items()}
    passes, bests, kept, rows, rejections = [], [], [], [], []
    for name, found in scored.items():
        if drawn[name] < 2:
            continue
        mine, most = tag("model", name), drawn[name]
        ks = sorted({*[k for k in KS if k <= most], most})
        successes = [(len(values), sum(value >= threshold for value in values)) for values in found]
        passed, best = bench.pass_at_k_curve(successes, ks), bench.best_of_n_curve(found, ks)
        passes.append({"name": name, "points": [r.point(k, each, mine) for k, each in passed.items()]})
        bests.append({"name": name, "points": [r.point(n, each, mine) for n, each in best.items()]})
        rejected = bench.rejection_curve(found, ks, threshold)
        kept.append({"name": name, "points": [r.point(n, each, mine) for n, (each, _) in rejected.items()]})
        score, drawn_mean = rejected[most]
        rejections.append(
            [
                r.text(name, mine),
                r.number(most, "count"),
                r.estimate(score, mine),
                r.estimate(drawn_mean, mine, unit="number"),
                r.estimate(best[most], mine),
            ]
        )
        hits = [[float(value >= threshold) for value in values] for values in found]
        ends = [bench.average_at_k(hits), passed[most], bench.average_at_k(found), best[most]]
        rows.append([r.text(name, mine), r.number(most, "count"), *(r.estimate(each, mine) for each in ends)])
    if passes:
        note = f"A response counts as a success from a clipped score of {threshold:g}."
        yield r.Table("Avg@k", SEVERAL, rows, f"{note} Intervals by prompt: its responses are drawn together.")
        yield r.Curve("pass@k", "k responses", "prompts with a success", passes, note)
        yield r.Curve("Best of N", "N responses", "expected best clipped score", bests)
        how = "Responses are drawn until one succeeds, at most N; if none does, the last one is kept."
        yield r.Table("Rejection sampling", REJECTION, rejections, f"{how} {note}")
        yield r.Curve(
            "Rejection sampling of N", "N responses at most", "expected clipped score of what is kept", kept, how
        )


def _scored(answered: Sequence["ScoredAnswer"]) -> dict[str, list[float]]:
    """The clipped scores of each prompt's responses that have one."""
    found: dict[str, list[float]] = {each.key: [] for each in answered}
    for each in answered:
        if each.clipped is not None:
            found[each.key].append(each.clipped)
    return found


def pairs_of(by_model: Models) -> list[tuple[str, str]]:
    return list(combinations(by_model, 2))


def by_scores(by_model: Models) -> list[tuple[str, str, str, int | None]]:
    """(first, second, prompt, outcome) of every two models on every prompt that both answered."""
    means = {name: by_prompt(rows) for name, rows in by_model.items()}
    found = []
    for a, b in pairs_of(by_model):
        for key, one in means[a].items():
            if key in means[b]:
                two = means[b][key]
                found.append((a, b, key, None if one is None or two is None else (two > one) - (two < one)))
    return found


def note_outcomes(outcomes: Outcomes, behind: Mapping[str, Mapping[str, Sequence["ScoredAnswer"]]]) -> None:
    """Tags the responses `behind[model][prompt]` of every comparison with its outcome and the other model."""
    for a, b, key, side in outcomes:
        for model, other, words in zip((a, b), (b, a), OUTCOMES[side], strict=True):
            for each in behind[model][key]:
                each.outcomes[words].append(other)


def ranking(outcomes: Outcomes, how: str) -> r.Table:
    absent = Counter(name for a, b, _, side in outcomes if side is None for name in (a, b))
    found = bradley_terry([Comparison(a, b, side) for a, b, _, side in outcomes], [key for _, _, key, _ in outcomes])
    rows = []
    for each in found.items:
        mine, lost = tag("model", each.item), absent[each.item]
        cells = [r.text(each.item, mine), r.count(each.wins, mine, "won"), r.count(each.ties, mine, "tied")]
        cells += [r.count(each.losses, mine, "lost"), r.count(lost, mine, "no outcome", tone="warn" if lost else "")]
        rows.append([*cells, r.estimate(each.win_rate, mine), r.estimate(each.strength, mine, unit="points")])
    missing = f" Without an outcome: {with_noun(found.missing, 'comparisons')}." if found.missing else ""
    note = (
        f"Prompts compared {how}; a number leads to the responses compared. Strengths are Bradley-Terry log odds with "
        f"mean 0.{missing} {found.problem}"
    )
    if not outcomes:
        note = "No prompt has responses of two models: examples are compared by their keys."
    columns = ["Model", "Won", "Tied", "Lost", "No outcome", "Win rate", "Strength"]
    return r.table("Who wins", columns, rows, note.strip())
