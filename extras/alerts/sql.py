"""SQL for sending alerts."""

from typing import Final

# Takes due messages: the oldest of each channel, of at most %(per_person)s channels of each volunteer, those with the
# fewest first. Locks the rows of messages that it takes, and skips those that another worker is taking. They are due
# again at %(again_at)s: the process that took them may have died by then.
TAKE: Final = """
WITH first AS (
    SELECT DISTINCT ON (m.channel_id) m.id, m.due_at, c.user_id
      FROM alerts_alertmessage m
      JOIN alerts_alertchannel c ON c.id = m.channel_id
      JOIN portal_user u ON u.id = c.user_id
     WHERE m.outcome = 'waiting' AND m.due_at <= %(now)s AND c.paused_at IS NULL
       AND u.is_active AND u.deletion_asked_at IS NULL
     ORDER BY m.channel_id, m.created_at, m.id
), ranked AS (
    SELECT id, due_at, row_number() OVER (PARTITION BY user_id ORDER BY due_at, id) AS place FROM first
), taken AS (
    SELECT m.id
      FROM alerts_alertmessage m JOIN ranked r ON r.id = m.id
     WHERE r.place <= %(per_person)s AND m.outcome = 'waiting' AND m.due_at <= %(now)s
     ORDER BY r.place, r.due_at, m.id
     LIMIT %(most)s
       FOR UPDATE OF m SKIP LOCKED
)
UPDATE alerts_alertmessage m SET due_at = %(again_at)s, ntries = m.ntries + 1
  FROM taken WHERE taken.id = m.id
RETURNING m.id
"""
