"""Creates missing (host, version) records, with the host's statistics for an older version of the same program.

Credit document, "Statistics maintained by the server". The scheduler creates them when it sends a job. The validator
creates those still missing in a separate transaction, so that no other pass waits long for the inserts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection, transaction

from credit.engine.facts import VersionFacts
from credit.engine.rules import Rules
from credit.models import ProcessorType
from credit.statistics import sql


def create_missing(
    app_id: int, records: Sequence[tuple[int, int, int]], users: Sequence[int], hosts: Sequence[int]
) -> None:
    """Create missing records (host, version or 0, number of the processor type from 1) and missing sums of credit."""
    types = list(ProcessorType)
    with transaction.atomic(), connection.cursor() as cursor:
        if records:
            columns = [list(column) for column in zip(*records, strict=True)]
            columns[2] = [types[place - 1] for place in columns[2]]
            cursor.execute(sql.INSERT_RECORDS, [*columns, app_id, Rules.published().initial_error_rate])
        if users:
            cursor.execute(sql.INSERT_USER_CREDIT, [list(users)])
        if hosts:
            cursor.execute(sql.INSERT_HOST_CREDIT, [list(hosts)])


def use_medians(versions: Iterable[VersionFacts], rules: Rules) -> None:
    """Replace versions' averages by the median of their hosts' averages, if the app uses it.

    This is the document's remedy against cheating hosts ("Cross-version normalization", notes).
    """
    by_id = {version.id: version for version in versions}
    with connection.cursor() as cursor:
        cursor.execute(sql.HOST_MEDIANS, [list(by_id), rules.min_host_samples])
        medians = dict(cursor.fetchall())
    for id_, version in by_id.items():
        version.pfc.avg = medians.get(id_)
