"""Addresses of certificates."""

from django.urls import path

from extras.certificates import views

urlpatterns = [
    path("history/certificates/", views.certificates, name="certificates"),
    path("history/certificates/new/", views.new, name="new_certificate"),
    path("history/certificates/<int:pk>/", views.certificate, name="certificate"),
    path("history/certificates/<int:pk>/change/", views.change, name="change_certificate"),
    path("certificates/", views.check_form, name="check_certificates"),
    path("certificates/key.pem", views.public_key, name="certificate_key"),
    path("certificates/<str:text>/", views.check, name="check_certificate"),
    path("certificates/<str:text>/statement.json", views.statement, name="certificate_statement"),
]
