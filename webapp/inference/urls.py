from django.urls import path

from . import endpoints_views, views
from .promotion import views as promotion

urlpatterns = [
    path("models", views.models, name="models"),
    path("models/new", views.model_new, name="model_new"),
    path("models/<int:model_id>", views.model, name="model"),
    path("models/<int:model_id>/edit", views.model_edit, name="model_edit"),
    path("models/<int:model_id>/act", views.model_act, name="model_act"),
    path("models/<int:model_id>/download", views.model_download, name="model_download"),
    path("models/<int:model_id>/delete", views.model_delete, name="model_delete"),
    path("models/<int:model_id>/promote", promotion.model_promote, name="model_promote"),
    path("models/<int:model_id>/stage", promotion.model_stage, name="model_stage"),
    path("models/aliases", promotion.aliases, name="model_aliases"),
    path("models/aliases/<slug:name>/remove", promotion.alias_remove, name="model_alias_remove"),
    path("models/endpoints", endpoints_views.endpoints, name="endpoints"),
    path("models/endpoints/new", endpoints_views.endpoint_new, name="endpoint_new"),
    path("models/endpoints/<int:endpoint_id>", endpoints_views.endpoint, name="endpoint"),
    path("models/endpoints/<int:endpoint_id>/edit", endpoints_views.endpoint_edit, name="endpoint_edit"),
    path("models/endpoints/<int:endpoint_id>/act", endpoints_views.endpoint_act, name="endpoint_act"),
    path("models/endpoints/<int:endpoint_id>/use", endpoints_views.endpoint_use, name="endpoint_use"),
    path("models/endpoints/<int:endpoint_id>/recorded", endpoints_views.endpoint_recorded, name="endpoint_recorded"),
    path(
        "models/endpoints/<int:endpoint_id>/checks/<int:check_id>",
        endpoints_views.endpoint_check,
        name="endpoint_check",
    ),
    path("verifiers", views.verifiers, name="verifiers"),
    path("verifiers/<slug:name>/try", views.verifier_try, name="verifier_try"),
]
