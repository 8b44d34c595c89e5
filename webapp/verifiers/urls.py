from django.urls import path

from . import views

urlpatterns = [
    path("verifiers", views.verifiers, name="verifiers"),
    path("verifiers/<slug:name>/try", views.verifier_try, name="verifier_try"),
]
