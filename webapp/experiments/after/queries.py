"""A chain for drawing: the runs before a run, and the steps that wait after it."""

from dataclasses import dataclass, field
from typing import Any

from webapp.evaluation.models import Evaluation
from webapp.evaluation.sources.registry import SOURCES, Options

from ..models import OVER, ChainStep, Run

DEEPEST = 20
State = ChainStep.State


@dataclass
class ChainNode:
    """A run, an evaluation, or a step that is not launched. `why` says what it waits for, or why it was never launched."""

    run: Run | None = None
    step: ChainStep | None = None
    evaluation: Evaluation | None = None
    why: str = ""
    behind: list["ChainNode"] = field(default_factory=list)

    @property
    def title(self) -> str:
        return str(self.run or self.evaluation or self.step)

    @property
    def place(self) -> int:
        """The id of a step that is not launched; 0 for a run or an evaluation."""
        return self.step.pk if self.step and not self.run and not self.evaluation else 0

    @property
    def badge(self) -> str:
        return looks(self.step) if self.step else ""

    @property
    def can_cancel(self) -> bool:
        return self.step is not None and self.step.state == State.WAITING

    @property
    def can_go_on(self) -> bool:
        """Whether a new step may come after it."""
        if self.run is not None:
            return True
        return self.step is not None and self.step.kind == ChainStep.Kind.RUN and self.step.state == State.WAITING


def looks(step: ChainStep) -> str:
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


def chain(run: Run) -> ChainNode:
    """The whole chain of a run, from its first run on: at most three queries a level."""
    root = ChainNode(run=first_of(run))
    level = [root]
    for _ in range(DEEPEST):
        level = _next_level(level)
        if not level:
            break
    return root


def _next_level(level: list[ChainNode]) -> list[ChainNode]:
    runs = {node.run.pk: node for node in level if node.run}
    waiting = {node.step.pk: node for node in level if node.step and not node.run}
    rows = ChainStep.objects.select_related("after", "behind", "evaluation").order_by("pk")
    found = [*rows.filter(after__in=runs)] if runs else []
    found += [*rows.filter(behind__in=waiting)] if waiting else []
    launched = Run.objects.with_names().defer("config").in_bulk([row.run_id for row in found if row.run_id])
    below = []
    for row in found:
        parent = runs[row.after_id] if row.after_id else waiting[row.behind_id or 0]
        node = ChainNode(launched.get(row.run_id or 0), row, row.evaluation, why(row))
        parent.behind.append(node)
        below.append(node)
    return below


def why(step: ChainStep) -> str:
    """What a step waits for, or why it was never launched."""
    if step.state != State.WAITING:
        gone = step.state == State.LAUNCHED and step.run_id is None and step.evaluation_id is None
        return "Its run or evaluation was deleted" if gone else step.reason
    before = step.after
    if before is None:
        return f"Waits until “{step.behind}” before it was launched and has finished"
    if before.state == Run.State.FINISHED:
        return f"{before} has finished: it is about to be launched"
    if before.state in OVER:
        goes_on = f"It is launched once {before} is resumed and finishes. Cancel it if {before} will not be resumed"
        return (
            f"{before} was stopped. {goes_on}" if before.state == Run.State.STOPPED else f"{before} failed. {goes_on}"
        )
    if before.state == Run.State.PAUSED:
        return f"{before} is paused. It is launched once that is resumed and finishes"
    return f"Waits until {before} has finished"


def judges(workspace_id: int) -> Options:
    """Versions of judges that can decide criteria of an evaluation: (id, words)."""
    return SOURCES["judges"].options(workspace_id, "criterion,checklist")


def flat(root: ChainNode) -> list[ChainNode]:
    """Every step of the chain, each after the one for which it waits."""
    found = []
    for node in root.behind:
        found += [node, *flat(node)]
    return found


def told(node: ChainNode) -> dict[str, Any]:
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
        "run": step.run_id,
        "evaluation": step.evaluation_id,
        "created_at": step.created_at.isoformat(),
    }
