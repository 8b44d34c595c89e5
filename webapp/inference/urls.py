from django.urls import path

from . import views

urlpatterns = [
    path("models", views.models, name="models"),
    path("models/new", views.model_new, name="model_new"),
    path("models/<int:model_id>", views.model, name="model"),
    path("models/<int:model_id>/delete", views.model_delete, name="model_delete"),
    path("verifiers", views.verifiers, name="verifiers"),
    path("verifiers/<slug:name>/try", views.verifier_try, name="verifier_try"),
]
