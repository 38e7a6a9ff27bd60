"""Fixtures for tests of the editor."""

from __future__ import annotations

import pytest
from django.test import Client

from extras.scenario_editor.tests.editor_page import EditorPage
from tests.support.emulator_experiments import begin


@pytest.fixture
def page(signed_in: Client) -> EditorPage:
    """The editor of a new experiment."""
    return EditorPage(signed_in, begin(signed_in))
