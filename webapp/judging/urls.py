from django.urls import path

from . import editor, suggestions, views

urlpatterns = [
    path("judges", views.judges, name="judges"),
    path("judges/new", editor.judge_new, name="judge_new"),
    path("judges/try", editor.judge_try, name="judge_try"),
    path("judges/examples", editor.examples, name="judge_pick"),
    path("judges/trials/<int:trial_id>", editor.trial, name="judge_trial"),
    path("judges/<int:judge_id>", views.judge, name="judge"),
    path("judges/<int:judge_id>/edit", editor.judge_edit, name="judge_edit"),
    path("judges/<int:judge_id>/act", views.judge_act, name="judge_act"),
    path("judges/<int:judge_id>/compare", views.judge_compare, name="judge_compare"),
    path("judges/<int:judge_id>/examples", editor.judge_examples, name="judge_examples"),
    path("judges/<int:judge_id>/versions/<int:number>", views.version, name="judge_version"),
    path("projects/<int:project_id>/suggestions", suggestions.project_suggestions, name="project_suggestions"),
    path("verdicts/<int:verdict_id>", views.verdict, name="verdict"),
]
