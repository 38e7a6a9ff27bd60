"""Badges of volunteers: who had one keeps it, and nobody else gets it, as the rules were programs of the project."""

from __future__ import annotations

from typing import Final

from django.apps import apps

from extras.moving_in.boinc.values import line
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, BrokenRow, secs
from extras.moving_in.machinery.steps import Context, RowStep, Translate, Translated, refers_to
from extras.moving_in.source import Row, Table

_KIND: Final = "before_move"
_RULE: Final = "held before this project moved here"
_BADGES: Final = Table("badge", {"type": 0, "name": b"", "title": b"", "description": b""})
_TITLE_CHARS: Final = 60
_OF_PEOPLE: Final = 0


def _texts(context: Context, tally: Tally) -> dict[int, tuple[str, str]]:
    """The title of each badge, which is another for each, and what it means."""
    texts: dict[int, tuple[str, str]] = {}
    titles = set(apps.get_model("badges", "Badge").objects.exclude(kind=_KIND).values_list("title", flat=True))
    for row in context.source.rows(_BADGES, 0, None) if context.source.has("badge") else ():
        if row["type"] != _OF_PEOPLE:
            continue
        number = f" ({row['id']})"
        title = line(row, "title", tally, _TITLE_CHARS) or line(row, "name", tally, _TITLE_CHARS) or "Badge"
        if title in titles:
            title = title[: _TITLE_CHARS - len(number)] + number
        titles.add(title)
        texts[row["id"]] = title, line(row, "description", tally, 200)
    return texts


def _translator(context: Context) -> Translate:
    is_installed, now = apps.is_installed("extras.badges"), context.now.timestamp()
    texts = _texts(context, Tally()) if is_installed else {}

    def translate(row: Row, tally: Tally) -> Translated:
        if not is_installed:
            raise BrokenRow("the extra badges is off, so badges cannot be imported")
        if row["badge_id"] not in texts:
            raise BrokenRow("a badge that no longer exists")
        return row["user_id"], *texts[row["badge_id"]], secs(row["create_time"], now) or FIRST_SECS

    return translate


BADGES: Final = RowStep(
    "badges",
    Table("badge_user", {"badge_id": 0, "create_time": 0.0}, key="user_id"),
    {"user_id": "bigint", "title": "text", "text": "text", "at_secs": "float8"},
    _translator,
    (
        f"""
  WITH made AS (
INSERT INTO badges_badge (title, text, kind, threshold, is_active, changed_at)
SELECT DISTINCT title, text, '{_KIND}', 1, false, %(now)s FROM moving_rows ORDER BY title
    ON CONFLICT (title) DO NOTHING RETURNING id, title),
       badges AS (
SELECT id, title FROM made UNION ALL SELECT id, title FROM badges_badge WHERE kind = '{_KIND}')
INSERT INTO badges_badgeaward (user_id, badge_id, day, rule, awarded_at)
SELECT m.user_id, b.id, (to_timestamp(m.at_secs) AT TIME ZONE 'UTC')::date, '{_RULE}', to_timestamp(m.at_secs)
  FROM moving_rows m JOIN credit_useropening u ON u.user_id = m.user_id JOIN badges b ON b.title = m.title
 ORDER BY m.user_id, b.id
    ON CONFLICT (user_id, badge_id) DO NOTHING""",
    ),
    (refers_to("credit_useropening", "user_id", "user_id", "its account is missing here"),),
)
