from django.urls import path

from . import views

urlpatterns = [
    path("judges/<int:judge_id>/evaluations", views.judge_evaluations, name="judge_evaluations"),
    path("lineage/<str:what>/<int:what_id>", views.lineage, name="lineage"),
    path("lineage/<str:what>/<int:what_id>/graph", views.lineage_graph, name="lineage_graph"),
]
