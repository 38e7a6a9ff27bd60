"""Whom an announcement is for."""

from __future__ import annotations

import pytest

from accounting.engine.audience import UNKNOWN, Audience, Reader, version_of

READER = Reader(frozenset({1, 2}), "windows_x86_64", (8, 0, 2), frozenset({("alpine", 102)}))


@pytest.mark.parametrize(
    ("audience", "fits"),
    [
        (Audience(), True),
        (Audience(project_id=2), True),
        (Audience(project_id=3), False),
        (Audience(platform="windows_"), True),
        (Audience(platform="x86_64"), False),
        (Audience(older_than=(8, 0, 3)), True),
        (Audience(older_than=(8, 0, 2)), False),
        (Audience(app_name="alpine"), True),
        (Audience(app_name="alpine", app_version_num=102), True),
        (Audience(app_name="alpine", app_version_num=101), False),
        (Audience(app_name="beech"), False),
        # All that is given has to hold.
        (Audience(project_id=2, platform="windows_", older_than=(9, 0, 0)), True),
        (Audience(project_id=2, platform="windows_", older_than=(7, 0, 0)), False),
    ],
)
def test_all_that_is_given_has_to_hold(audience: Audience, fits: bool) -> None:
    assert audience.may_fit(READER) == fits


def test_a_client_that_does_not_say_its_version_is_not_called_old() -> None:
    assert not Audience(older_than=(8, 0, 0)).may_fit(Reader(frozenset(), "", UNKNOWN))


def test_what_was_not_looked_up_may_fit() -> None:
    assert Audience(app_name="alpine").may_fit(Reader(frozenset(), "", UNKNOWN))
    assert not Audience(app_name="alpine", platform="windows_").may_fit(Reader(frozenset(), "", UNKNOWN))


@pytest.mark.parametrize(
    ("text", "version"), [("8.2.4", (8, 2, 4)), ("8.2", (8, 2, 0)), ("", UNKNOWN), ("8", UNKNOWN), ("x8.2", UNKNOWN)]
)
def test_versions_are_read(text: str, version: tuple[int, int, int]) -> None:
    assert version_of(text) == version
