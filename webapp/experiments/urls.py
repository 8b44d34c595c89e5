from django.urls import path
from django.views.generic import RedirectView

from .after import project_views as settled
from .after import views as chains
from .alarms import views as alarms
from .claims import views as claims
from .launch import draft_views as drafts
from .launch import views as launch
from .lifecycle import views as lifecycle
from .notes import views as notes
from .outputs import views as outputs
from .outputs.retention import views as retention
from .people import views as people
from .recipes import views as recipes
from .repeats import views as repeats
from .rewards import views as rewards
from .rollouts import episode_views as episodes
from .rollouts import prompt_views as prompts
from .rollouts import sending_views as sending
from .rollouts import views as rollouts
from .runs import views as runs
from .sharing import comparison as shared_comparison
from .sharing import public as shared
from .sharing import views as sharing
from .sweeps import views as sweeps
from .table import views as table

urlpatterns = [
    path("experiments", table.runs, name="runs"),
    path("experiments/count", table.count, name="runs_count"),
    path("experiments/rows", table.rows, name="runs_rows"),
    path("experiments.csv", table.csv, name="runs_csv"),
    path("experiments/views/<int:view_id>/delete", table.view_delete, name="run_view_delete"),
    path("experiments/repeats", repeats.repeats, name="repeats"),
    path("experiments/repeats/<int:repeat_id>", repeats.repeat_act, name="repeat_act"),
    path("experiments/repeats/<int:repeat_id>/delete", repeats.repeat_remove, name="repeat_remove"),
    path("experiments/line", lifecycle.runs_line, name="runs_line"),
    path("settings/share-links", sharing.share_links, name="share_links"),
    path("settings/retention", retention.checkpoint_rule, name="checkpoint_rule"),
    path("experiments/share", sharing.share_new, name="share_new"),
    path("settings/share-links/<int:link_id>/revoke", sharing.share_revoke, name="share_revoke"),
    path("shared/<str:secret>", shared.page, name="shared"),
    path("shared/<str:secret>/compare", shared_comparison.compare, name="shared_compare"),
    path("shared/<str:secret>/curves", shared_comparison.curves, name="shared_curves"),
    path("experiments/claims", claims.methods, name="claims"),
    path("experiments/claims/<int:study_id>", claims.study, name="claim_study"),
    path("experiments/claims/<int:study_id>/standing", claims.study_standing, name="claim_standing"),
    path("experiments/claims/<int:study_id>/again", claims.study_again, name="claim_again"),
    path("experiments/claims/<slug:plan>/new", claims.study_new, name="claim_new"),
    path("experiments/sweeps", sweeps.sweeps, name="sweeps"),
    path("experiments/sweeps/<int:sweep_id>", sweeps.sweep, name="sweep"),
    path("experiments/sweeps/<int:sweep_id>/again", sweeps.sweep_again, name="sweep_again"),
    path("experiments/sweeps/<int:sweep_id>/standing", sweeps.sweep_standing, name="sweep_standing"),
    path("experiments/sweeps/<int:sweep_id>/stop", sweeps.sweep_stop, name="sweep_stop"),
    path("experiments/sweeps/<int:sweep_id>/resume", sweeps.sweep_resume, name="sweep_resume"),
    path("experiments/sweeps/<int:sweep_id>/failed", sweeps.sweep_resume_failed, name="sweep_resume_failed"),
    path("experiments/sweeps/<int:sweep_id>/trials", sweeps.sweep_add, name="sweep_add"),
    path("runs", RedirectView.as_view(pattern_name="runs", query_string=True)),
    path("runs/new", launch.run_new, name="run_new"),
    path("runs/trainable", recipes.trainable, name="trainable"),
    path("runs/trained", runs.trained, name="trained"),
    path("projects/<int:project_id>/train", launch.train_on_answers, name="train_on_answers"),
    path("projects/<int:project_id>/then", settled.project_then, name="project_then"),
    path(
        "projects/<int:project_id>/then/<int:step_id>/cancel", settled.project_then_cancel, name="project_then_cancel"
    ),
    path("runs/compare", table.compare, name="runs_compare"),
    path("models/<int:model_id>/judge", outputs.model_as_judge, name="model_as_judge"),
    path("runs/<int:run_id>", runs.run_page, name="run"),
    path("runs/<int:run_id>/labels", table.run_labels, name="run_labels"),
    path("runs/<int:run_id>/fork", launch.run_fork, name="run_fork"),
    path("runs/<int:run_id>/edit", drafts.run_edit, name="run_edit"),
    path("runs/<int:run_id>/launch", drafts.run_launch, name="run_launch"),
    path("runs/<int:run_id>/discard", drafts.run_discard, name="run_discard"),
    path("runs/<int:run_id>/restore", drafts.run_restore, name="run_restore"),
    path("runs/<int:run_id>/sweep", sweeps.sweep_new, name="sweep_new"),
    path("runs/<int:run_id>/stop", lifecycle.run_stop, name="run_stop"),
    path("runs/<int:run_id>/limit", lifecycle.run_limit, name="run_limit"),
    path("runs/<int:run_id>/tokens", lifecycle.run_tokens, name="run_tokens"),
    path("runs/<int:run_id>/early", lifecycle.run_early, name="run_early"),
    path("runs/<int:run_id>/spending", lifecycle.run_spending, name="run_spending"),
    path("runs/<int:run_id>/schedule", lifecycle.run_schedule, name="run_schedule"),
    path("runs/<int:run_id>/priority", lifecycle.run_priority, name="run_priority"),
    path("runs/<int:run_id>/pause", lifecycle.run_pause, name="run_pause"),
    path("runs/<int:run_id>/resume", lifecycle.run_resume, name="run_resume"),
    path("runs/<int:run_id>/chain/recipe", chains.chain_recipe, name="chain_recipe"),
    path("runs/<int:run_id>/chain/evaluate", chains.chain_evaluate, name="chain_evaluate"),
    path("runs/<int:run_id>/chain/<int:step_id>/cancel", chains.chain_cancel, name="chain_cancel"),
    path("runs/<int:run_id>/chain/<int:behind_id>/<str:recipe>", chains.chain_new, name="chain_new"),
    path("runs/<int:run_id>/judges", rewards.run_judges, name="run_judges"),
    path("runs/<int:run_id>/judges/<int:judge_id>", rewards.run_budget, name="run_budget"),
    path("runs/<int:run_id>/extend", lifecycle.run_extend, name="run_extend"),
    path("runs/<int:run_id>/rollouts/dataset", rollouts.run_rollouts_dataset, name="run_rollouts_dataset"),
    path("runs/<int:run_id>/rollouts/annotate", sending.run_rollouts_annotate, name="run_rollouts_annotate"),
    path("runs/<int:run_id>/rollouts/<int:rollout_id>/episode", episodes.rollout_episode, name="rollout_episode"),
    path("runs/<int:run_id>/prompt", prompts.run_prompt, name="run_prompt"),
    path("runs/<int:run_id>/notes/<int:note_id>", notes.run_note, name="run_note"),
    path("runs/<int:run_id>/keep", retention.run_keep, name="run_keep"),
    path("runs/<int:run_id>/rename", lifecycle.run_rename, name="run_rename"),
    path("runs/<int:run_id>/delete", lifecycle.run_delete, name="run_delete"),
    path("runs/<int:run_id>/alarms", alarms.run_alarms, name="run_alarms"),
    path("runs/<int:run_id>/alarms/<int:alarm_id>/people", alarms.run_alarm_people, name="run_alarm_people"),
    path("runs/<int:run_id>/reasons", people.reasons, name="run_reasons"),
    path("runs/<int:run_id>/people", people.run_people, name="run_people"),
    path("runs/<int:run_id>/<str:tab>", runs.run_page, name="run_tab"),
]
