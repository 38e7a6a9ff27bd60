"""Sentences for the owner: why a computer works for a project, or does not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.choosing.keyword_names import keyword_names
from accounting.engine.choice.facts import Choice, Score, Trouble, TroubleKind, Verdict
from accounting.engine.choice.rules import USUAL_PROJECTS
from accounting.models import Project, processor_name

# %(keywords)s, %(types)s, %(usual)s and %(reason)s are filled in.
_TEXTS: Final[dict[Verdict, str]] = {
    Verdict.BY_HAND: _("You picked it."),
    Verdict.LIKED: _("You said yes to %(keywords)s."),
    Verdict.EQUAL: _("Nothing speaks for or against it, so it ranks with the others."),
    Verdict.COVERS_TYPE: _("It uses the %(types)s of this computer better than the others do."),
    Verdict.SECOND_PROJECT: _("It provides work when another project has none."),
    Verdict.OUTRANKED: _("Others ranked higher. A computer works for about %(usual)s projects."),
    Verdict.LESS_LIKED: _("You prefer others."),
    Verdict.PASSED_OVER: _("It is skipped for a while."),
    Verdict.NOT_PICKED: _("You picked others."),
    Verdict.VETOED: _("You said no to %(keywords)s."),
    Verdict.EXCLUDED: _("You do not want it on this computer."),
    Verdict.UNFIT: _("It has no program for this computer or for the processors it may use."),
    Verdict.NO_ACCOUNT: _("There is no account at the project yet."),
    Verdict.DOWN: _("The project is down. %(reason)s"),
    Verdict.ENDED: _("It no longer accepts computers."),
}


@dataclass(frozen=True, slots=True)
class Why:
    """The verdict on one project for a computer. ``part``: its share of the computer's work, 0 to 1; None if not
    chosen.
    """

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
        """Whether points were decisive: they are not for projects that are forbidden, impossible or picked by hand."""
        return self.score.draw != 0


def explain(choice: Choice, parts: Mapping[int, float], projects: Mapping[int, Project]) -> list[Why]:
    """Explain a choice: the chosen projects by their share of the work, then the others by name."""
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
    """Return processor types in words: "NVIDIA GPU and AMD GPU"."""
    return listed([processor_name(type_) for type_ in types])


def listed(words: list[str]) -> str:
    """Join words as in a sentence: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return gettext("%(words)s and %(last)s") % {"words": ", ".join(words[:-1]), "last": words[-1]}


def _text(score: Score, project: Project) -> str:
    keywords = listed([gettext("“%(text)s”") % {"text": name} for name in keyword_names(score.because)])
    values = {
        "keywords": keywords,
        "types": types_text(score.covers),
        "reason": project.down_reason,
        "usual": USUAL_PROJECTS,
    }
    return (gettext(_TEXTS[score.verdict]) % values).strip()


def trouble_text(trouble: Trouble) -> str:
    if trouble.kind == TroubleKind.NO_WORK:
        return gettext("No work for the %(types)s") % {"types": types_text((trouble.processor_type,))}
    return gettext("Does not answer") if trouble.kind == TroubleKind.FAILING else gettext("Says that it has ended")
