"""Ids that are made of others, against the vectors of the protocol document."""

from __future__ import annotations

from portal.wire.credentials import external_cpid


def test_the_published_id_is_that_of_the_protocols_vector() -> None:
    internal = "0123456789abcdef0123456789abcdef"
    assert external_cpid(internal, "user@example.org") == "5603948572131507c1ed8b902e8baef5"
    assert external_cpid(internal, "bob@example.org") != external_cpid(internal, "user@example.org")
