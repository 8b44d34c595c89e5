"""Addresses of MLflow's tracking protocol; names are the protocol's. MLFLOW_TRACKING_URI is the address of `/mlflow`."""

from django.urls import path

from . import artifacts, pages, views

TRACKING = "api/2.0/mlflow/"
ARTIFACTS = "api/2.0/mlflow-artifacts/artifacts"

urlpatterns = [
    path("", pages.links, name="mlflow_links"),
    path("runs/<str:key>", pages.run, name="mlflow_run"),
    path(TRACKING + "experiments/create", views.create_experiment),
    path(TRACKING + "experiments/get", views.get_experiment),
    path(TRACKING + "experiments/get-by-name", views.get_experiment_by_name),
    path(TRACKING + "experiments/search", views.search_experiments),
    path(TRACKING + "experiments/set-experiment-tag", views.set_experiment_tag),
    path(TRACKING + "runs/create", views.create_run),
    path(TRACKING + "runs/update", views.update_run),
    path(TRACKING + "runs/get", views.get_run),
    path(TRACKING + "runs/search", views.search_runs),
    path(TRACKING + "runs/delete", views.delete_run),
    path(TRACKING + "runs/restore", views.restore_run),
    path(TRACKING + "runs/log-metric", views.log_metric),
    path(TRACKING + "runs/log-batch", views.log_batch),
    path(TRACKING + "runs/log-parameter", views.log_param),
    path(TRACKING + "runs/set-tag", views.set_tag),
    path(TRACKING + "runs/delete-tag", views.delete_tag),
    path(TRACKING + "metrics/get-history", views.get_history),
    path(TRACKING + "artifacts/list", artifacts.of_run),
    path(TRACKING + "logged-models/search", views.search_models),
    path(ARTIFACTS, artifacts.listed),
    path(ARTIFACTS + "/<path:path>", artifacts.file),
    path("<path:rest>", views.nothing),
]
