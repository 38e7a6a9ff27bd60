"""Addresses of signature images."""

from django.urls import path

from extras.signature_image import views

urlpatterns = [
    path("account/signature-image/", views.signature_image, name="signature_image"),
    path("signature/<str:token>.png", views.picture, name="signature_picture"),
]
