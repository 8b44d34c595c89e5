from django.urls import path

from . import views

urlpatterns = [
    path("lineage/<str:what>/<int:what_id>", views.lineage, name="lineage"),
    path("lineage/<str:what>/<int:what_id>/graph", views.lineage_graph, name="lineage_graph"),
]
