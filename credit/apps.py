"""Validated credit: engine, validator, feeder."""

from django.apps import AppConfig


class CreditConfig(AppConfig):
    name = "credit"
    verbose_name = "Validated credit"
