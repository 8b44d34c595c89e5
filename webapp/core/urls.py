from django.urls import path

from . import views

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("api/v1/docs", views.api_docs, name="api_docs"),
]
