from django.urls import path

from . import views

urlpatterns = [path("try", views.page, name="try")]
