"""Pages of container images."""

from django.urls import path

from extras.containers import views

urlpatterns = [
    path("project/batches/containers/", views.run_image, name="run_image"),
    path("project/batches/images/", views.images, name="images"),
    path("project/batches/images/<int:pk>/", views.image, name="image"),
    path("project/batches/images/<int:pk>/remove/", views.remove_variant, name="remove_image_variant"),
]
