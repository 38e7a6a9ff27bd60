"""Addresses of alerts."""

from django.urls import path

from extras.alerts import views

urlpatterns = [
    path("account/alerts/", views.alerts, name="alerts"),
    path("account/alerts/browser/moved/", views.move_browser, name="move_alert_browser"),
    path("account/alerts/<slug:path>/", views.add, name="add_alerts"),
    path("account/alerts/<int:pk>/secret/", views.renew_secret, name="renew_alert_secret"),
    path("account/alerts/<int:pk>/choose/", views.choose, name="choose_alerts"),
    path("account/alerts/<int:pk>/test/", views.send_test, name="test_alerts"),
    path("account/alerts/<int:pk>/resume/", views.resume, name="resume_alerts"),
    path("account/alerts/<int:pk>/remove/", views.remove, name="remove_alerts"),
    path("sw.js", views.service_worker, name="service_worker"),
]
