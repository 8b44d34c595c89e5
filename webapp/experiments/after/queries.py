"""A chain for drawing: the runs before a run, and the steps that wait after it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Prefetch, Q

from webapp.evaluation.models import Evaluation
from webapp.evaluation.sources.registry import SOURCES, Options

from ..models import ACTIVE, LOGGED, OVER, ChainStep, ChainWait, Run
from ..queries import runs

DEEPEST = 20
MOST_NODES = 200
MOST_OFFERED = 30
STEP = "step-"  # begins the value of a step among the things that are offered
DELETED = "A run for which it waits was deleted"
State = ChainStep.State


@dataclass
class ChainNode:
    """A run, an evaluation, or a step that is not launched. `why` says what it waits for, or why it was never launched.

    `before`: what it waits for, the run or step that it comes after first. `behind`: what comes after it. `level`: 0 if it waits for nothing.
    """

    run: Run | None = None
    step: ChainStep | None = None
    evaluation: Evaluation | None = None
    why: str = ""
    before: list["ChainNode"] = field(default_factory=list)
    behind: list["ChainNode"] = field(default_factory=list)
    level: int = 0

    @property
    def title(self) -> str:
        return str(self.run or self.evaluation or self.step)

    @property
    def place(self) -> int:
        """The id of a step that is not launched; 0 for a run or an evaluation."""
        return self.step.pk if self.step and not self.run and not self.evaluation else 0

    @property
    def badge(self) -> str:
        return state_without_run(self.step) if self.step else ""

    @property
    def can_cancel(self) -> bool:
        return self.step is not None and self.step.state == State.WAITING

    @property
    def can_go_on(self) -> bool:
        """Whether a new step may come after it."""
        if self.run is not None:
            return True
        return self.step is not None and self.step.kind == ChainStep.Kind.RUN and self.step.state == State.WAITING


def state_without_run(step: ChainStep) -> str:
    """The state of a run as which a step without a run is drawn."""
    alike = {State.WAITING: "queued", State.REFUSED: "failed", State.CANCELLED: "cancelled"}
    return alike.get(State(step.state), "stopped")


def first_of(run: Run) -> Run:
    """The run at the beginning of the chain that this one belongs to."""
    seen = {run.pk}
    while len(seen) <= DEEPEST:
        before = ChainStep.objects.filter(run=run, after__isnull=False).values_list("after_id", flat=True).first()
        if before is None or before in seen:
            break
        seen.add(before)
        run = Run.objects.with_names().get(pk=before)
    return run


def chain(run: Run) -> list[ChainNode]:
    """All nodes of the chains to which a run belongs, each after those for which it waits: at most two queries a level, and one for the
    runs."""
    rows, run_ids = _connected(run)
    found = Run.objects.with_names().defer("config").in_bulk([*run_ids, *(row.run_id for row in rows if row.run_id)])
    nodes: dict[str, ChainNode] = {}
    launched = {row.run_id for row in rows if row.run_id}
    for pk in sorted(run_ids - launched):
        if pk in found:
            nodes[f"run {pk}"] = ChainNode(found[pk])
    for row in rows:
        node = ChainNode(found.get(row.run_id or 0), row, row.evaluation, waiting_reason(row))
        nodes[f"run {row.run_id}" if node.run else f"step {row.pk}"] = node
    for node in nodes.values():
        _tie(node, nodes)
    return _in_order(list(nodes.values()))


def _connected(run: Run) -> tuple[list[ChainStep], set[int]]:
    """The steps that hang together with a run, in both directions, and the runs for which they wait; at most `MOST_NODES`."""
    steps: dict[int, ChainStep] = {}
    run_ids, fresh_runs, fresh_steps, wanted = {run.pk}, {run.pk}, set[int](), set[int]()
    rows = ChainStep.objects.filter(project=None).select_related("after", "behind", "evaluation")
    rows = rows.prefetch_related(Prefetch("waits", ChainWait.objects.select_related("run", "on").order_by("pk")))
    for _ in range(2 * DEEPEST):
        beside = Q(after__in=fresh_runs) | Q(run__in=fresh_runs) | Q(behind__in=fresh_steps) | Q(pk__in=wanted)
        joined = ChainWait.objects.filter(Q(run__in=fresh_runs) | Q(on__in=fresh_steps))
        beside |= Q(pk__in=joined.values("step"))
        found = list(rows.filter(beside).exclude(pk__in=list(steps)).order_by("pk")[: MOST_NODES - len(steps)])
        if not found:
            break
        steps |= {row.pk: row for row in found}
        fresh_steps = {row.pk for row in found}
        wanted = {pk for row in found for pk in (row.behind_id, *(each.on_id for each in row.waits.all())) if pk}
        named = {
            pk for row in found for pk in (row.after_id, row.run_id, *(each.run_id for each in row.waits.all())) if pk
        }
        fresh_runs = named - run_ids
        run_ids |= fresh_runs
    return [steps[pk] for pk in sorted(steps)], run_ids


def _tie(node: ChainNode, nodes: dict[str, ChainNode]) -> None:
    """Ties a node to those for which it waits, the one that it comes after first."""
    if node.step is None:
        return
    names = [f"run {node.step.after_id}" if node.step.after_id else f"step {node.step.behind_id}"]
    names += [f"run {each.run_id}" if each.run_id else f"step {each.on_id}" for each in node.step.waits.all()]
    node.before = [nodes[name] for name in names if name in nodes and nodes[name] is not node]
    if node.before:
        node.before[0].behind.append(node)


def _in_order(nodes: list[ChainNode]) -> list[ChainNode]:
    """The nodes in levels: each one after all for which it waits."""
    for _ in range(len(nodes)):
        moved = [node for node in nodes if node.level < max((each.level + 1 for each in node.before), default=0)]
        for node in moved:
            node.level = max(each.level + 1 for each in node.before)
        if not moved:
            break
    return sorted(nodes, key=lambda node: node.level)


def waiting_reason(step: ChainStep) -> str:
    """The runs for which a step waits, or the reason why it was never launched."""
    if step.state != State.WAITING:
        gone = step.state == State.LAUNCHED and step.run_id is None and step.evaluation_id is None
        return "Its run or evaluation was deleted" if gone else step.reason
    others = [each.run or each.on for each in step.waits.all()]
    if None in others:
        return DELETED
    runs_too = [each for each in others if isinstance(each, Run) and each.state != Run.State.FINISHED]
    steps_too = [f"“{each}”" for each in others if isinstance(each, ChainStep)]
    before = step.after
    if before is None:
        told = f"Waits until “{step.behind}” before it was launched and has finished"
        also = [*(each.quoted for each in runs_too), *steps_too]
        return f"{told}, and until {_have_finished(also)}" if also else told
    waits = [before, *runs_too] if before.state != Run.State.FINISHED else runs_too
    if not waits and not steps_too:
        have = f"{before.quoted} has finished" if not others else "All runs for which it waits have finished"
        return f"{have}: it is about to be launched"
    if stuck := [each for each in waits if _stuck(each)]:
        return _stuck(stuck[0]) if len(stuck) == 1 else _all_stuck(stuck)
    return f"Waits until {_have_finished([*(each.quoted for each in waits), *steps_too])}"


def _stuck(before: Run) -> str:
    """The reason why a run for which a step waits does not finish by itself; empty if it may."""
    name = before.quoted
    if before.state in OVER:
        was = "was stopped" if before.state == Run.State.STOPPED else "failed"
        return (
            f"{name} {was}. It is launched once {name} is resumed and finishes. Cancel it if {name} will not be resumed"
        )
    if before.state == Run.State.PAUSED:
        return f"{name} is paused. It is launched once that is resumed and finishes"
    return ""


def _all_stuck(found: list[Run]) -> str:
    were = {Run.State.STOPPED: "was stopped", Run.State.PAUSED: "is paused"}
    told = join_names([f"{each.quoted} {were.get(Run.State(each.state), 'failed')}" for each in found])
    return (
        f"{told}. It is launched once all of them are resumed and finish. Cancel it if one of them will not be resumed"
    )


def _have_finished(names: list[str]) -> str:
    return f"{join_names(names)} {'has' if len(names) == 1 else 'have'} finished"


def join_names(names: list[str]) -> str:
    """One name or more as a part of a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


@dataclass(frozen=True)
class ChainOffer:
    """Something for which a step can wait too: a run, or a step that becomes one. `value`: of its checkbox."""

    value: str
    title: str
    where: str
    state: str
    label: str
    chosen: bool = False


def joinable(run: Run, behind: ChainStep | None = None, chosen: Collection[str] = ()) -> list[ChainOffer]:
    """The newest other runs that are not over, and the newest steps that are not launched, for which a step after `run` can wait too."""
    workspace = run.experiment.workspace_id
    found = runs(workspace).filter(state__in=ACTIVE).exclude(recipe=LOGGED).exclude(pk=run.pk).defer("config")
    steps = ChainStep.objects.filter(workspace_id=workspace, project=None, state=State.WAITING, kind=ChainStep.Kind.RUN)
    steps = steps.exclude(pk=behind.pk if behind else 0).order_by("-pk")[:MOST_OFFERED]
    offers: list[tuple[str, Run | ChainStep, str, str, str]] = [
        *(
            (f"{row.pk}", row, row.experiment.name, row.state, row.get_state_display())
            for row in found.order_by("-id")[:MOST_OFFERED]
        ),
        *((f"{STEP}{row.pk}", row, row.asked["experiment"], state_without_run(row), "Not launched") for row in steps),
    ]
    return [
        ChainOffer(value, str(row), where, state, label, value in chosen) for value, row, where, state, label in offers
    ]


def judges(workspace_id: int) -> Options:
    """Versions of judges that can decide criteria of an evaluation: (id, words)."""
    return SOURCES["judges"].options(workspace_id, "criterion,checklist")


def node_json(node: ChainNode) -> dict[str, Any]:
    """A step as the API shows it."""
    step = node.step
    assert step is not None  # noqa: S101  # only the root has none
    return {
        "id": step.pk,
        "kind": step.kind,
        "name": str(step),
        "recipe": step.asked["recipe"],
        "with_output": step.asked.get("with_output"),
        "judges": step.asked.get("judges", {}),
        "state": step.state,
        "reason": node.why,
        "after": step.after_id,
        "behind": step.behind_id,
        "also": [each.run_id for each in step.waits.all() if each.run_id],
        "also_steps": [each.on_id for each in step.waits.all() if each.on_id],
        "run": step.run_id,
        "evaluation": step.evaluation_id,
        "created_at": step.created_at.isoformat(),
    }
