"""The statements of beat. Each is a transaction, and locks the row of the lease before that of a task."""

from __future__ import annotations

from typing import Final

# Renews the lease of this token or, once it has expired, takes it under another one. Waits for whoever has its row,
# and then looks at the clock again. A lease that lasts longer than any can is of a clock that was ahead: of
# another machine, before a failover.
TAKE: Final = """
INSERT INTO portal_beatlease AS lease (id, token, holder, taken_at, expires_at)
VALUES (1, %(new_token)s, %(holder)s, clock_timestamp(), clock_timestamp() + %(secs)s * interval '1 second')
ON CONFLICT (id) DO UPDATE
   SET token = CASE WHEN lease.token = %(token)s THEN lease.token ELSE excluded.token END,
       taken_at = CASE WHEN lease.token = %(token)s THEN lease.taken_at ELSE excluded.taken_at END,
       holder = excluded.holder,
       expires_at = excluded.expires_at
 WHERE lease.token = %(token)s
    OR lease.expires_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '600 seconds'
RETURNING token
"""
HOLDER: Final = "SELECT holder, extract(epoch FROM expires_at - clock_timestamp())::float8 FROM portal_beatlease"
RELEASE: Final = "UPDATE portal_beatlease SET expires_at = clock_timestamp() WHERE token = %(token)s"

# Takes a task in hand, and renews the lease: no row if somebody else has the lease, or it has expired.
RESERVE: Final = """
WITH lease AS (
  UPDATE portal_beatlease SET expires_at = clock_timestamp() + %(secs)s * interval '1 second'
   WHERE token = %(token)s AND expires_at > clock_timestamp() RETURNING token)
UPDATE portal_periodictask SET due_at = clock_timestamp(), sent_at = NULL FROM lease WHERE name = %(name)s
RETURNING name
"""
# The broker has them. Nothing if another process may have taken them in hand meanwhile.
SENT: Final = """
UPDATE portal_periodictask SET sent_at = clock_timestamp()
 WHERE name = ANY (%(names)s) AND EXISTS (SELECT FROM portal_beatlease WHERE token = %(token)s)
"""

# New entries of the schedule count as done just now.
ADD: Final = """
INSERT INTO portal_periodictask (name, due_at, sent_at, begun_at)
SELECT name, now(), now(), now() FROM unnest(%(names)s::text[]) AS name
ON CONFLICT (name) DO NOTHING RETURNING name
"""
# How long ago each was due, by whatever clock, and whether the broker took it.
STANDINGS: Final = """
SELECT name, greatest(extract(epoch FROM clock_timestamp() - due_at)::float8, 0), sent_at IS NOT NULL
  FROM portal_periodictask WHERE name = ANY (%(names)s)
"""
# The broker has lost what it had: whatever no worker has begun.
UNSEND: Final = """
UPDATE portal_periodictask SET sent_at = NULL
 WHERE (begun_at IS NULL OR begun_at < due_at) AND sent_at IS NOT NULL
   AND EXISTS (SELECT FROM portal_beatlease WHERE token = %(token)s AND expires_at > clock_timestamp())
RETURNING name
"""
BEGUN: Final = "UPDATE portal_periodictask SET begun_at = clock_timestamp() WHERE name = %(name)s"
