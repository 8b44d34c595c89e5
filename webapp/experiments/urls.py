from django.urls import path
from django.views.generic import RedirectView

from . import claim_pages, objectives, reason_match_pages, views
from .table import views as table

urlpatterns = [
    path("objectives", objectives.objectives, name="objectives"),
    path("objectives/calculations/<str:calculation_id>", objectives.calculation, name="objective_calculation"),
    path("objectives/<slug:name>", objectives.objective, name="objective"),
    path("objectives/<slug:name>/calculate", objectives.calculate, name="objective_calculate"),
    path("experiments", table.runs, name="runs"),
    path("experiments/count", table.count, name="runs_count"),
    path("experiments.csv", table.csv, name="runs_csv"),
    path("experiments/views/<int:view_id>/delete", table.view_delete, name="run_view_delete"),
    path("experiments/claims", claim_pages.methods, name="claims"),
    path("experiments/claims/<int:study_id>", claim_pages.study, name="claim_study"),
    path("experiments/claims/<int:study_id>/standing", claim_pages.study_standing, name="claim_standing"),
    path("experiments/claims/<slug:plan>/new", claim_pages.study_new, name="claim_new"),
    path("runs", RedirectView.as_view(pattern_name="runs", query_string=True)),
    path("runs/new", views.run_new, name="run_new"),
    path("runs/trainable", views.trainable, name="trainable"),
    path("runs/trained", views.trained, name="trained"),
    path("projects/<int:project_id>/train", views.train_on_answers, name="train_on_answers"),
    path("runs/compare", views.compare, name="runs_compare"),
    path("models/<int:model_id>/judge", views.model_as_judge, name="model_as_judge"),
    path("runs/<int:run_id>", views.run_page, name="run"),
    path("runs/<int:run_id>/labels", table.run_labels, name="run_labels"),
    path("runs/<int:run_id>/fork", views.run_fork, name="run_fork"),
    path("runs/<int:run_id>/stop", views.run_stop, name="run_stop"),
    path("runs/<int:run_id>/resume", views.run_resume, name="run_resume"),
    path("runs/<int:run_id>/judges", views.run_judges, name="run_judges"),
    path("runs/<int:run_id>/judges/<int:judge_id>", views.run_budget, name="run_budget"),
    path("runs/<int:run_id>/extend", views.run_extend, name="run_extend"),
    path("runs/<int:run_id>/rollouts/dataset", views.run_rollouts_dataset, name="run_rollouts_dataset"),
    path("runs/<int:run_id>/rename", views.run_rename, name="run_rename"),
    path("runs/<int:run_id>/delete", views.run_delete, name="run_delete"),
    path("runs/<int:run_id>/alarms", views.run_alarms, name="run_alarms"),
    path("runs/<int:run_id>/alarms/<int:alarm_id>/people", views.run_alarm_people, name="run_alarm_people"),
    path("runs/<int:run_id>/reasons", reason_match_pages.reasons, name="run_reasons"),
    path("runs/<int:run_id>/people", views.run_people, name="run_people"),
    path("runs/<int:run_id>/<str:tab>", views.run_page, name="run_tab"),
]
