from django.urls import path

from . import views

urlpatterns = [
    path("jobs", views.jobs, name="weights_jobs"),
    path("jobs/new", views.new, name="weights_new"),
    path("jobs/<int:job_id>", views.job, name="weights_job"),
    path("jobs/<int:job_id>/act", views.job_act, name="weights_job_act"),
]
