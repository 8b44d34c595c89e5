from django.urls import path

from . import views

urlpatterns = [
    path("settings/webhooks", views.webhooks, name="webhooks"),
    path("settings/webhooks/<int:hook_id>", views.webhook, name="webhook"),
    path("settings/webhooks/<int:hook_id>/act", views.act, name="webhook_act"),
    path("settings/webhooks/<int:hook_id>/deliveries/<int:delivery_id>", views.delivery, name="webhook_delivery"),
]
