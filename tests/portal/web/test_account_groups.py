"""The pages about an account stand in five groups."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from tests.support.page_text import text_of

GROUPS = ["Computing", "Messages", "What others see", "Sign-in and security", "Your data"]


def navs(page: str) -> list[str]:
    return re.findall(r'<nav class="tabs[^>]*>.*?</nav>', page, re.S)


@pytest.mark.parametrize(
    ("view", "group", "pages"),
    [
        ("preferences", 0, ["Preferences", "This project", "Testing"]),
        ("alerts", 1, ["E-mails", "Alerts"]),
        ("profile", 2, ["Profile", "Statistics sites", "Signature image", "Top lists", "Team"]),
        (
            "keys",
            3,
            [
                "E-mail address",
                "Password",
                "Two-factor login",
                "Sessions",
                "Client keys",
                "API tokens",
                "Security events",
            ],
        ),
        ("consents", 4, ["Copy and deletion", "Consents"]),
    ],
)
def test_a_page_of_the_account_shows_its_group_and_the_pages_in_it(
    signed_in: Client, view: str, group: int, pages: list[str]
) -> None:
    groups, own, *_rest = navs(signed_in.get(reverse(view)).content.decode())
    assert re.findall(r">([^<]+)</a>", groups) == GROUPS
    assert re.findall(r'aria-current="true">([^<]+)</a>', groups) == [GROUPS[group]]
    assert sorted(re.findall(r">([^<]+)</a>", own)) == sorted(pages)
    assert re.findall(rf'href="{reverse(view)}" aria-current="page"', own)
    assert own.count("aria-current") == 1


def test_a_group_leads_to_its_first_page(signed_in: Client) -> None:
    groups = navs(signed_in.get(reverse("profile")).content.decode())[0]
    for address in re.findall(r'href="([^"]+)"', groups):
        assert text_of(signed_in.get(address, follow=True))
