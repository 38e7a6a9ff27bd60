"""The scenario editor as a visitor has it."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from emulator.engine.scenario import Scenario
from emulator.files.scenario_json import from_json
from emulator.models import Experiment


class EditorPage:
    """The fields of its form, and buttons to press."""

    def __init__(self, client: Client, experiment: Experiment) -> None:
        self.client = client
        self.experiment = experiment
        self.url = reverse("experiment_edit", args=[experiment.pk])
        self.look(client.get(self.url))

    def look(self, answer: Any) -> None:
        self.answer = answer
        self.fields = {"revision": str(answer.context["revision"])}
        for form in answer.context["rows"].forms():
            for bound in form:
                text = form.data.get(bound.html_name, "")
                if text:
                    self.fields[bound.html_name] = text

    def press(self, do: str, **changes: str) -> Any:
        self.fields |= {name.replace("__", "-"): text for name, text in changes.items()}
        sent = {name: text.replace("\n", "\r\n") for name, text in self.fields.items()}  # as browsers do
        answer = self.client.post(self.url, {**sent, "do": do})
        if answer.context is not None:
            self.look(answer)
        return answer

    def scenario(self) -> Scenario:
        self.experiment.refresh_from_db()
        return from_json(self.experiment.scenario)
