from django.urls import path

from . import views

urlpatterns = [
    path("settings/data", views.mine, name="personal_data"),
    path("settings/data/<int:export_id>", views.download, name="personal_data_download"),
    path("personal-data/<str:secret>", views.by_link, name="personal_data_link"),
    path("settings/data/erase", views.erase_mine, name="erase_account"),
    path("installation/retention", views.retention_page, name="installation_retention"),
    path("installation/people/<int:user_id>/data", views.of_person, name="person_data"),
    path("installation/people/<int:user_id>/erase", views.erase_person, name="erase_person"),
]
