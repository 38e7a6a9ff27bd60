"""Batches of jobs, and messages of tasks that nothing has read yet."""

from __future__ import annotations

import hashlib
from typing import Final

from extras.moving_in.boinc.job_values import moment, xml_of
from extras.moving_in.boinc.values import line
from extras.moving_in.engine import jobs
from extras.moving_in.engine.blobs import fields
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery.steps import Context, RowStep, Translate, Translated, refers_to
from extras.moving_in.source import Row, Table

_ABORTED, _RETIRED = 3, 4


def _batches(context: Context) -> Translate:
    def translate(row: Row, tally: Tally) -> Translated:
        created = moment(row["create_time"]) or context.now
        ended = moment(row["completion_time"]) or created
        return (
            row["id"],
            row["app_id"],
            row["user_id"],
            line(row, "name", tally, jobs.MAX_NAME_CHARS) or f"batch_{row['id']}",
            max(row["njobs"], 0),
            created,
            ended if row["state"] == _ABORTED else None,
            moment(row["expire_time"]),
            ended if row["state"] == _RETIRED else None,
        )

    return translate


BATCHES: Final = RowStep(
    "batches",
    Table(
        "batch",
        {
            **{"user_id": 0, "app_id": 0, "name": b"", "njobs": 0, "state": 0, "create_time": 0},
            **{"completion_time": 0, "expire_time": 0},
        },
    ),
    {
        **{"id": "bigint", "app_id": "bigint", "owner_id": "bigint", "name": "text", "nworkunits": "bigint"},
        **{"created_at": "timestamptz", "cancelled_at": "timestamptz", "expires_at": "timestamptz"},
        "retired_at": "timestamptz",
    },
    _batches,
    [
        """
INSERT INTO credit_batch AS b (id, app_id, owner_id, name, request_id, nworkunits, created_at, cancelled_at, expires_at,
       retired_at)
SELECT m.id, m.app_id, u.user_id, m.name, '', m.nworkunits, m.created_at, m.cancelled_at, m.expires_at, m.retired_at
  FROM moving_rows m JOIN credit_app a ON a.id = m.app_id LEFT JOIN credit_useropening u ON u.user_id = m.owner_id
    ON CONFLICT (id) DO UPDATE
   SET nworkunits = excluded.nworkunits, cancelled_at = coalesce(b.cancelled_at, excluded.cancelled_at),
       expires_at = excluded.expires_at, retired_at = coalesce(b.retired_at, excluded.retired_at)
 WHERE (b.nworkunits, b.cancelled_at, b.expires_at, b.retired_at) IS DISTINCT FROM
       (excluded.nworkunits, coalesce(b.cancelled_at, excluded.cancelled_at), excluded.expires_at,
        coalesce(b.retired_at, excluded.retired_at))
"""
    ],
    [refers_to("credit_app", "id", "app_id", "its app is missing here", shown="id")],
)


def _trickles(context: Context) -> Translate:
    def translate(row: Row, tally: Tally) -> Translated:
        xml = xml_of(row["xml"]).replace("\0", "")
        said = fields(xml)
        text = said.get("text", xml)[:65_536]
        digest = hashlib.md5(f"{row['id']}\n{xml}".encode(), usedforsecurity=False).digest()
        variety, sent_at = line(row, "variety", tally, 64), moment(row["create_time"]) or context.now
        return row["id"], row["hostid"], said.get("result_name", ""), variety, text, digest, sent_at

    return translate


TRICKLES: Final = RowStep(
    "messages of tasks",
    Table("msg_from_host", {"create_time": 0, "hostid": 0, "variety": b"", "xml": b""}, where="t.handled = 0"),
    {
        **{"id": "bigint", "host_id": "bigint", "result_name": "text", "variety": "text", "text": "text"},
        **{"digest": "bytea", "sent_at": "timestamptz"},
    },
    _trickles,
    [
        """
INSERT INTO scheduler_trickle (host_id, user_id, result_id, variety, text, digest, written_at, received_at)
SELECT h.id, h.owner_id, r.id, m.variety, m.text, m.digest, m.sent_at, m.sent_at
  FROM moving_rows m JOIN portal_host h ON h.id = m.host_id
  JOIN credit_useropening u ON u.user_id = h.owner_id
  LEFT JOIN credit_result r ON r.name = m.result_name AND r.host_id = h.id
 ORDER BY m.id ON CONFLICT DO NOTHING
"""
    ],
    [refers_to("portal_host", "id", "host_id", "its computer is missing here", shown="id")],
)
