from django.urls import path

from . import views

urlpatterns = [
    path("objectives", views.objectives, name="objectives"),
    path("objectives/calculations/<str:calculation_id>", views.calculation, name="objective_calculation"),
    path("objectives/<slug:name>", views.objective, name="objective"),
    path("objectives/<slug:name>/calculate", views.calculate, name="objective_calculate"),
]
