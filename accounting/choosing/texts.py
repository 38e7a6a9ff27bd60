"""Why a computer works for a project, or does not, in sentences for its owner."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from accounting.engine.choice.facts import Choice, Score, Trouble, TroubleKind, Verdict
from accounting.engine.choice.rules import USUAL_PROJECTS
from accounting.models import PROCESSOR_TYPES, Project
from portal.wire import keywords as choice_keywords

# {keywords}, {types}, {troubles} and {reason} are filled in.
_TEXTS: Final[dict[Verdict, str]] = {
    Verdict.BY_HAND: "You picked it.",
    Verdict.LIKED: "You said yes to {keywords}.",
    Verdict.EQUAL: "Nothing speaks for or against it, so it is as good as others.",
    Verdict.COVERS_TYPE: "It serves the {types} of this computer better than the others.",
    Verdict.SECOND_PROJECT: "So that the computer has work when another project has none.",
    Verdict.OUTRANKED: f"Others came first; a computer works for about {USUAL_PROJECTS} projects.",
    Verdict.LESS_LIKED: "You like others more.",
    Verdict.PASSED_OVER: "It is passed over for a while.",
    Verdict.NOT_PICKED: "You picked others.",
    Verdict.VETOED: "You said no to {keywords}.",
    Verdict.EXCLUDED: "You do not want it on this computer.",
    Verdict.UNFIT: "It has no program for this computer, or none for the processors that it may use.",
    Verdict.NO_ACCOUNT: "There is no account at the project yet.",
    Verdict.DOWN: "The project is down. {reason}",
    Verdict.ENDED: "It no longer takes computers.",
}


@dataclass(frozen=True, slots=True)
class Why:
    """The verdict on one project for a computer. ``part``: of the computer's work, 0 to 1; None if not chosen."""

    project: Project
    score: Score
    part: float | None
    text: str
    troubles: list[tuple[str, dt.datetime]]

    @property
    def colour(self) -> int:
        return self.project.data_colour

    @property
    def has_points(self) -> bool:
        """Whether points decided: they do not for projects that are forbidden, impossible or picked by hand."""
        return self.score.draw != 0


def explain(choice: Choice, parts: Mapping[int, float], projects: Mapping[int, Project]) -> list[Why]:
    """All projects of a choice: the chosen ones by their part of the work, then the others by name."""
    lines = [
        Why(
            projects[score.project_id],
            score,
            parts.get(score.project_id),
            _text(score, projects[score.project_id]),
            [(trouble_text(trouble), trouble.since) for trouble in dict.fromkeys(score.troubles)],
        )
        for score in choice.scores
    ]
    return sorted(lines, key=lambda why: (why.part is None, -(why.part or 0), why.project.name.casefold()))


def types_text(types: tuple[str, ...]) -> str:
    """Processor types in words: "NVIDIA GPU and AMD GPU"."""
    return listed([PROCESSOR_TYPES.get(type_, type_) for type_ in types])


def listed(words: list[str]) -> str:
    """Words as in a sentence: "a, b and c"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _text(score: Score, project: Project) -> str:
    keywords = listed([f"“{name}”" for name in choice_keywords.names(score.because)])
    return (
        _TEXTS[score.verdict]
        .format(keywords=keywords, types=types_text(score.covers), reason=project.down_reason)
        .strip()
    )


def trouble_text(trouble: Trouble) -> str:
    if trouble.kind == TroubleKind.NO_WORK:
        return f"No work for the {types_text((trouble.processor_type,))}"
    return "Does not answer" if trouble.kind == TroubleKind.FAILING else "Says that it has ended"
