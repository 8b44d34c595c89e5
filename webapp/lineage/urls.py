from django.urls import path

from . import views

urlpatterns = [path("lineage/<str:what>/<int:what_id>", views.lineage, name="lineage")]
