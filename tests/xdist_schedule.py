"""Decides which worker runs which test. The tests of a file run together, because they share fixtures. The tests of a long file are spread.

The longest files come first, because a long file at the end would leave the other workers idle. Then come the files with the most tests, as
in xdist.
"""

from collections import OrderedDict
from typing import Any

from xdist.scheduler import LoadFileScheduling

APART = {
    "tests/e2e/test_accessibility.py",
    "tests/webapp/test_api_fuzz.py",
    "tests/webapp/test_api_roles.py",
}  # many tests, or long ones, that share no fixture
TOGETHER = {
    # they read the same files: see `tests.architecture.sources`
    "sources": {
        *(f"tests/architecture/test_{name}.py" for name in ("class_names", "lock", "names_of_tests", "prose", "shape")),
        "tests/webapp/security/test_supply.py",
    },
    # both load torch, or fork processes from one that has loaded it
    "pages of models": {
        *(
            f"tests/e2e/test_{name}.py"
            for name in ("best_of_n", "own_rewards", "pairs_to_policy", "second_round", "try")
        ),
    },
    "torch": {
        "tests/webapp/annotation/tasks/test_gold_matched.py",
        "tests/webapp/experiments/outputs/test_taking_home.py",
        "tests/webapp/inference/registry/test_models.py",
        "tests/webapp/inference/registry/test_registering.py",
        "tests/webapp/inference/serving/test_serving.py",
        "tests/webapp/mlflow/test_models.py",
        "tests/webapp/mlflow/test_stored_files.py",
        "tests/webapp/weights/test_process.py",
        "tests/client/test_documented.py",
        "tests/client/test_wandb_scripts.py",
    },
}
LONGEST = (
    "tests/e2e/test_accessibility.py",
    "tests/e2e/test_many_metrics.py",
    "tests/e2e/test_annotate_kinds.py",
    "tests/e2e/test_runs_table.py",
    "tests/e2e/test_run_charts.py",
    "tests/e2e/test_workbench.py",
    "tests/e2e/test_rollout_window.py",
    "pages of models",
    "tests/e2e/test_notices.py",
    "tests/e2e/test_reports.py",
    "tests/e2e/test_claims.py",
    "tests/trainer/claims/test_command.py",
    "tests/trainer/loops/test_together.py",
    "tests/trainer/runners/test_loop.py",
    "tests/trainer/loops/recipes/test_policy.py",
    "tests/benchmarks/test_hacking.py",
    "tests/trainer/loops/recipes/test_alternating.py",
    "tests/trainer/loops/recipes/test_warm_up.py",
    "tests/trainer/ray_jobs/test_carried.py",
    "tests/trainer/claims/test_answers.py",
    "tests/trainer/loops/policy/test_offline.py",
    "tests/trainer/memory/test_measured.py",
    "tests/trainer/inference/test_embeddings.py",
    "tests/trainer/loops/policy/test_objectives.py",
    "tests/trainer/loops/learner/test_sharding.py",
    "tests/trainer/metrics/test_corrected.py",
    "tests/trainer/objectives/test_calculator.py",
    "tests/trainer/loops/roles/test_turn_watch.py",
    "tests/trainer/test_every_recipe.py",
    "tests/trainer/judges/test_kinds.py",
    "tests/trainer/loops/learner/test_shared_checkpoints.py",
    "tests/trainer/loops/recipes/test_phases_elsewhere.py",
    "tests/trainer/rewards/test_judgement_printing.py",
    "tests/trainer/loops/recipes/test_alternating_on_cards.py",
    "tests/trainer/loops/recipes/test_iterative_dpo.py",
    "tests/upgrade/test_upgrade.py",
    "tests/webapp/datasets/formats/test_real_files.py",
    "tests/webapp/test_closed_doors.py",
    "tests/webapp/test_api_roles.py",
    "tests/webapp/backups/test_restoring.py",
    "tests/webapp/security/test_scim.py",
    "torch",
    "tests/webapp/mlflow/test_real_client.py",
    "tests/webapp/experiments/rollouts/test_search.py",
    "tests/webapp/judging/asking/test_calls.py",
    "tests/webapp/judging/trials/test_services.py",
)
"""These files, and groups of `TOGETHER`, took most seconds in CI. A file that is missing here is only run later."""


class Queue(OrderedDict[str, dict[str, bool]]):
    """xdist's queue of files, and of tests of the files in `APART`. It takes the next one from the front."""

    def popitem(self, last: bool = True) -> tuple[str, dict[str, bool]]:
        longest = next((each for file in LONGEST for each in self if each.partition("::")[0] == file), None)
        return (longest, self.pop(longest)) if longest and not last else super().popitem(last)


class Spreading(LoadFileScheduling):  # type: ignore[misc]
    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self.workqueue = Queue()

    def remove_node(self, node: Any) -> str | None:
        """Returns the test that was running when the worker died. Tests that were not run yet go to the other workers. That test does not,
        because it would end each of them.

        xdist's own method passes all units on, even those that have been run, and a worker that got one of these waited for ever.
        """
        left = [
            (file, [test for test, done in unit.items() if not done])
            for file, unit in self.assigned_work.pop(node).items()
        ]
        died = next((tests.pop(0) for _, tests in left if tests), None)
        self.workqueue.update({file: dict.fromkeys(tests, False) for file, tests in left if tests})
        for other in self.assigned_work if died else ():
            self._reschedule(other)
        return died

    def _reschedule(self, node: Any) -> None:
        """A worker keeps its last test until it knows the next one. So a worker with a single test needs another unit, or the end."""
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in APART else next((unit for unit, files in TOGETHER.items() if file in files), file)
