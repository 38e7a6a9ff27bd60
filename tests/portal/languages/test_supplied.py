"""Texts that come with the software are in the reader's language, those of operators as they wrote them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.utils.translation import override

from accounting.projects import demo_projects, own_project
from extras.laboratory.trials import demo_texts
from portal.languages import supplied

pytestmark = pytest.mark.django_db


def test_the_example_apps_are_described_in_known_words() -> None:
    folder = Path(apps.get_app_config("scheduler").path, "examples")
    described = [tomllib.loads(file.read_text())["new_app"]["description"] for file in folder.glob("*/version.toml")]
    assert described and set(described) <= set(supplied.texts())


def test_supplied_texts_are_translated_and_others_stay() -> None:
    own = own_project.SUMMARY % {"site": settings.SITE_NAME}
    with override("de"):
        assert supplied.shown("First task") == "Erste Aufgabe"
        assert supplied.shown(own) == f"Die eigene Forschung von {settings.SITE_NAME}."
        assert supplied.shown("First job") == "First job"
        assert all(supplied.shown(text) != text for text in (*demo_projects.TEXTS, *demo_texts.SUPPLIED))
    with override("en"):
        assert supplied.shown(own) == own
