from django.urls import path

from . import views

urlpatterns = [
    path("datasets", views.datasets, name="datasets"),
    path("datasets/import", views.import_new, name="import_new"),
    path("datasets/import/preview", views.import_preview, name="import_preview"),
    path("imports/<int:job_id>", views.import_job, name="import_job"),
    path("datasets/<int:dataset_id>", views.dataset, name="dataset"),
    path("datasets/<int:dataset_id>/versions/<int:number>", views.dataset, name="dataset_version"),
    path("datasets/<int:dataset_id>/versions/<int:number>/freeze", views.freeze, name="dataset_freeze"),
    path("examples/<int:example_id>", views.example, name="example"),
]
