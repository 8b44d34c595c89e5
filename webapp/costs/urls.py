from django.urls import path

from . import views

urlpatterns = [path("costs", views.costs, name="costs"), path("costs.csv", views.costs_csv, name="costs_csv")]
