from django.urls import path

from .views import curate, datasets, explore, export, probes, versions

VERSION = "datasets/<int:dataset_id>/versions/<int:number>"
urlpatterns = [
    path("datasets", datasets.datasets, name="datasets"),
    path("datasets/import", datasets.import_new, name="import_new"),
    path("datasets/import/preview", datasets.import_preview, name="import_preview"),
    path("imports/<int:job_id>", datasets.import_job, name="import_job"),
    path("imports/<int:job_id>/cancel", datasets.import_cancel, name="import_cancel"),
    path("datasets/<int:dataset_id>", explore.dataset, name="dataset"),
    path("datasets/<int:dataset_id>/versions", versions.versions, name="dataset_versions"),
    path("datasets/<int:dataset_id>/housekeeping", versions.keep_house, name="dataset_housekeeping"),
    path(VERSION, explore.dataset, name="dataset_version"),
    path(f"{VERSION}/freeze", versions.freeze, name="dataset_freeze"),
    path(f"{VERSION}/views", explore.view_save, name="view_save"),
    path(f"{VERSION}/tags", versions.tag, name="dataset_tag"),
    path(f"{VERSION}/diff", versions.diff, name="dataset_diff"),
    path(f"{VERSION}/derive", versions.derive, name="dataset_derive"),
    path(f"{VERSION}/curate", curate.curate, name="dataset_curate"),
    path(f"{VERSION}/curate/start", curate.start, name="curation_start"),
    path(f"{VERSION}/pass-rates", probes.pass_rates, name="dataset_pass_rates"),
    path(f"{VERSION}/pass-rates/write", probes.write, name="dataset_pass_rates_write"),
    path(f"{VERSION}/export", export.export, name="dataset_export"),
    path("curations/<int:job_id>", curate.curation, name="curation"),
    path("probes/<int:probe_id>/delete", probes.delete, name="probe_delete"),
    path("views/<int:view_id>/delete", explore.view_delete, name="view_delete"),
    path("examples/<int:example_id>", explore.example, name="example"),
]
