"""Read the page of keywords: BOINC's keywords as a tree, the volunteer's answer to each, and its projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from accounting.choosing.keyword_names import keyword_name, keyword_names
from accounting.models import AccountSettings, Project, UserProject
from portal.models import User
from portal.wire import keywords
from portal.wire.keywords import KEYWORDS, PLACE, SCIENCE, Keyword

YES, MAYBE, NO = "yes", "maybe", "no"


@dataclass(slots=True)
class KeywordLine:
    """A keyword in the tree. ``forbidden_by``: a rejected keyword above it, which rejects this one, too."""

    keyword: Keyword
    answer: str
    projects: list[str]
    forbidden_by: str = ""
    parts: list[KeywordLine] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The keyword in the visitor's language."""
        return keyword_name(self.keyword.id)

    @property
    def name(self) -> str:
        """The name of its field in the form."""
        return f"k{self.keyword.id}"

    @property
    def is_open(self) -> bool:
        """Whether any of its parts has an answer."""
        return any(part.answer != MAYBE or part.is_open for part in self.parts)


@dataclass(frozen=True, slots=True)
class KeywordPage:
    sciences: list[KeywordLine]
    places: list[KeywordLine]
    yes: list[str]
    no: list[str]
    # Projects picked by hand, so that subjects decide nothing
    is_by_hand: bool
    # Active projects that a "no" forbids, and those that a "yes" is about
    forbidden: list[str]
    liked: list[str]


def read_keywords(user: User) -> KeywordPage:
    """Read the tree; four statements."""
    row = AccountSettings.objects.filter(user=user).first()
    yes, no = (frozenset(row.keywords_yes), frozenset(row.keywords_no)) if row else (frozenset(), frozenset())
    kin = {
        project.name: keywords.kin(choice.keyword for choice in project.keywords.all())
        for project in Project.objects.filter(is_active=True).prefetch_related("keywords")
    }
    forbidden = [name for name, ids in kin.items() if ids & no]
    return KeywordPage(
        _tree(SCIENCE, yes, no, kin),
        _tree(PLACE, yes, no, kin),
        keyword_names(yes),
        keyword_names(no),
        UserProject.objects.filter(user=user, is_chosen=True, project__is_active=True).exists(),
        forbidden,
        [name for name, ids in kin.items() if ids & yes and name not in forbidden],
    )


def _tree(
    category: str, yes: frozenset[int], no: frozenset[int], kin: Mapping[str, frozenset[int]]
) -> list[KeywordLine]:
    by_id: dict[int, KeywordLine] = {}
    roots: list[KeywordLine] = []
    for keyword in keywords.under(category):
        id_ = keyword.id
        answer = YES if id_ in yes else NO if id_ in no else MAYBE
        subject = by_id[id_] = KeywordLine(keyword, answer, [name for name, ids in kin.items() if id_ in ids])
        above = [keyword_name(id_) for id_ in keyword.kin[1:] if id_ in no]
        subject.forbidden_by = above[0] if above else ""
        (by_id[keyword.kin[1]].parts if keyword.level else roots).append(subject)
    return roots


def answers_of_form(form: Mapping[str, object]) -> tuple[list[int], list[int]]:
    """Return the numbers that a submitted form says yes to, and no to."""
    answers = {id_: form.get(f"k{id_}") for id_ in KEYWORDS}
    return [id_ for id_, answer in answers.items() if answer == YES], [
        id_ for id_, answer in answers.items() if answer == NO
    ]
