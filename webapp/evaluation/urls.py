from django.urls import path

from . import views

urlpatterns = [
    path("leaderboards", views.leaderboards, name="leaderboards"),
    path("leaderboards/<slug:benchmark>", views.leaderboard, name="leaderboard"),
    path("evaluations", views.evaluations, name="evaluations"),
    path("evaluations/new", views.evaluation_new, name="evaluation_new"),
    path("evaluations/recordings", views.recording_new, name="recording_new"),
    path("evaluations/<int:evaluation_id>", views.evaluation, name="evaluation"),
    path("evaluations/<int:evaluation_id>/state", views.evaluation_state, name="evaluation_state"),
    path("evaluations/<int:evaluation_id>/cases", views.evaluation_cases, name="evaluation_cases"),
    path("evaluations/<int:evaluation_id>/cases/<int:number>", views.evaluation_case, name="evaluation_case"),
    path("evaluations/<int:evaluation_id>/compare", views.evaluation_compare, name="evaluation_compare"),
    path("evaluations/<int:evaluation_id>/config", views.evaluation_config, name="evaluation_config"),
    path("evaluations/<int:evaluation_id>/again", views.evaluation_again, name="evaluation_again"),
    path("evaluations/<int:evaluation_id>/rerun", views.evaluation_rerun, name="evaluation_rerun"),
    path("evaluations/<int:evaluation_id>/tasks", views.evaluation_tasks, name="evaluation_tasks"),
    path("evaluations/<int:evaluation_id>/study", views.evaluation_study, name="evaluation_study"),
    path(
        "evaluations/<int:evaluation_id>/study/<int:project_id>/read",
        views.evaluation_study_read,
        name="evaluation_study_read",
    ),
    path("evaluations/<int:evaluation_id>/move", views.evaluation_move, name="evaluation_move"),
    path("evaluations/<int:evaluation_id>/rename", views.evaluation_rename, name="evaluation_rename"),
    path("evaluations/<int:evaluation_id>/delete", views.evaluation_delete, name="evaluation_delete"),
    path("evaluations/<int:evaluation_id>/export/<slug:kind>", views.evaluation_export, name="evaluation_export"),
]
