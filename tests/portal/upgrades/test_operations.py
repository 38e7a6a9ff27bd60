"""Operations of our own: the state they leave is that of Django's."""

from __future__ import annotations

import pytest
from django.db import models
from django.db.migrations import AlterField, CreateModel
from django.db.migrations.state import ProjectState

from portal.upgrades.operations import AlterTexts


def before() -> ProjectState:
    state = ProjectState()
    CreateModel("Lamp", [("id", models.AutoField(primary_key=True)), ("watts", models.IntegerField())]).state_forwards(
        "house", state
    )
    return state


def test_new_texts_are_in_the_state_and_the_models_are_not_built_anew() -> None:
    field = models.IntegerField("power", help_text="in watts", choices={40: "40 W"})
    ours, djangos = before(), before()
    built = ours.apps.get_model("house", "lamp")
    AlterTexts("lamp", "watts", field).state_forwards("house", ours)
    AlterField("lamp", "watts", field).state_forwards("house", djangos)
    assert ours == djangos
    assert ours.apps.get_model("house", "lamp") is built


@pytest.mark.parametrize("field", [models.TextField(), models.IntegerField(null=True), models.IntegerField(default=1)])
def test_what_the_database_would_notice_is_refused(field: models.Field[object, object]) -> None:
    with pytest.raises(ValueError, match="watts on lamp: changes the column"):
        AlterTexts("lamp", "watts", field).state_forwards("house", before())
