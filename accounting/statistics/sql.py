"""SQL of the import. One session does everything for a project: its lock, temporary tables, one transaction.

Locks, in this order: the ledger rows of the computers in question, by id, in a mode that does not block reports and
that merging and erasing wait for; then totals and days of the project, which only its own import and merges write.
"""

from __future__ import annotations

from typing import Final

from accounting.ledger.sql import MOST_CREDIT

LOCK: Final = "SELECT pg_try_advisory_lock(hashtext('accounting.statistics'), %(project)s)"
UNLOCK: Final = "SELECT pg_advisory_unlock_all()"
# A long COPY is no hanging statement, and a download in between is no forgotten session.
SESSION: Final = "SET statement_timeout = 0; SET idle_session_timeout = 0; SET jit = off; SET timezone = UTC"

# The records that our computers claim to be, and those that they turned out to be.
_CLAIMS: Final = """
SELECT p.host_id, (p.state->>'hostid')::bigint AS number
  FROM accounting_hostproject p WHERE p.project_id = %(project)s AND (p.state->>'hostid')::bigint > 0
 UNION
SELECT t.host_id, t.project_host_id FROM accounting_grantedtotal t WHERE t.project_id = %(project)s"""

# The possible addresses of a person's account at the project: their login, and others that they confirmed.
_ADDRESSES: Final = """
SELECT u.email UNION
SELECT lower(a.email) FROM account_emailaddress a WHERE a.user_id = u.id AND a.verified"""

# The ids across projects under which our volunteers' accounts may be exported.
_PEOPLE: Final = f"""
SELECT u.id AS user_id, md5(u.cross_project_id || a.email)::uuid AS fit
  FROM portal_user u, LATERAL ({_ADDRESSES}) a WHERE u.cross_project_id <> '' AND u.is_active"""

MAKE_TABLES: Final = """
CREATE TEMPORARY TABLE read_users
  (id bigint, total bigint, average float8, average_at float8, made_at bigint, cpid uuid) ON COMMIT DROP;
CREATE TEMPORARY TABLE read_hosts (LIKE read_users) ON COMMIT DROP"""
COPY_INTO: Final = "COPY {table} FROM STDIN"
ANALYZE: Final = "ANALYZE read_users; ANALYZE read_hosts"
# The claims to look for in the files. A claim alone proves nothing, see MATCH_RECORDS.
WANTED_HOSTS: Final = f"SELECT DISTINCT number FROM ({_CLAIMS}) c LIMIT %(most)s"
WANTED_USERS: Final = f"SELECT DISTINCT fit FROM ({_PEOPLE}) f LIMIT %(most)s"
DOUBLES: Final = "SELECT id FROM {table} GROUP BY id HAVING count(*) > 1 LIMIT 1"

LEDGERS: Final = f"""
SELECT l.host_id FROM accounting_hostledger l
 WHERE l.host_id IN (SELECT c.host_id FROM ({_CLAIMS}) c JOIN read_hosts r ON r.id = c.number)"""
LOCK_LEDGERS: Final = f"{LEDGERS} ORDER BY l.host_id FOR KEY SHARE"
BEGIN_TO_LOCK: Final = "SAVEPOINT ledgers"
RELEASE_LOCKS: Final = "ROLLBACK TO SAVEPOINT ledgers"

# Of a record that several computers claim, its previous owner gets it, then the one that reported last. A computer's
# ids are its present one, those of records merged into it, and earlier ones of the same client. A claim alone proves
# nothing: clients state which record they are. Their raw id, with the address, does.
MATCH_RECORDS: Final = f"""
SELECT DISTINCT ON (r.id)
       r.id, r.total, r.average, r.average_at, r.made_at, c.host_id, h.owner_id,
       floor(extract(epoch FROM h.created_at))::bigint,
       t.total_credit, t.highest_credit, t.counted_credit, floor(extract(epoch FROM t.made_at))::bigint,
       floor(extract(epoch FROM t.as_of))::bigint
  FROM ({_CLAIMS}) c
  JOIN read_hosts r ON r.id = c.number
  JOIN portal_host h ON h.id = c.host_id AND h.merged_into_id IS NULL
  JOIN portal_user u ON u.id = h.owner_id
  LEFT JOIN accounting_grantedtotal t ON t.project_id = %(project)s AND t.project_host_id = r.id
 WHERE r.cpid IN (
   SELECT md5(i.cpid || a.email)::uuid
     FROM (SELECT h.host_cpid AS cpid
            UNION SELECT k.cpid FROM accounting_hostclient k WHERE k.host_id = h.id AND k.told_apart_at IS NULL
            UNION SELECT m.host_cpid FROM portal_host m WHERE m.merged_into_id = h.id) i,
          ({_ADDRESSES} UNION SELECT %(account_email)s) a
    WHERE i.cpid <> '' AND a.email <> '')
 ORDER BY r.id, t.host_id = c.host_id DESC NULLS LAST, h.last_contact_at DESC, h.id"""

WRITE_TOTALS: Final = """
INSERT INTO accounting_grantedtotal AS kept (project_id, project_host_id, host_id, total_credit,
       highest_credit, counted_credit, avg_credit, avg_at, made_at, as_of, fits_since)
SELECT %(project)s, n.id, n.host_id, n.total, n.highest, n.counted, n.average, to_timestamp(n.average_at),
       to_timestamp(n.made_at), %(as_of)s, %(as_of)s
  FROM unnest(%(ids)s::bigint[], %(hosts)s::bigint[], %(totals)s::bigint[], %(highest)s::bigint[],
       %(counted)s::bigint[], %(averages)s::float8[], %(averages_at)s::float8[], %(made_at)s::bigint[])
       AS n(id, host_id, total, highest, counted, average, average_at, made_at)
ON CONFLICT (project_id, project_host_id) DO UPDATE
   SET host_id = excluded.host_id, total_credit = excluded.total_credit, highest_credit = excluded.highest_credit,
       counted_credit = excluded.counted_credit, avg_credit = excluded.avg_credit, avg_at = excluded.avg_at,
       made_at = excluded.made_at, as_of = excluded.as_of,
       fits_since = CASE WHEN kept.host_id = excluded.host_id THEN kept.fits_since ELSE excluded.as_of END"""

# A computer may have several records at a project. An export may fall in a closed month (ledger.months).
WRITE_DAYS: Final = f"""
WITH grants AS (
  SELECT n.user_id, n.host_id, least(sum(n.credit), {MOST_CREDIT})::bigint AS credit
    FROM unnest(%(users)s::bigint[], %(hosts)s::bigint[], %(grants)s::bigint[]) AS n(user_id, host_id, credit)
   WHERE n.credit > 0
   GROUP BY n.user_id, n.host_id),
months AS (
  INSERT INTO accounting_month AS kept (user_id, month, project_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time,
         njobs_success, njobs_error, flags, granted)
  SELECT g.user_id, date_trunc('month', %(day)s::date)::date, %(project)s, g.host_id, 0, 0, 0, 0, 0, 0, 0,
         g.credit
    FROM grants g WHERE %(day)s < (SELECT until FROM accounting_closedmonths)
   ORDER BY g.user_id, g.host_id
  ON CONFLICT (user_id, month, project_id, host_id) DO UPDATE
     SET granted = least(kept.granted::numeric + excluded.granted, {MOST_CREDIT}))
INSERT INTO accounting_grantedday AS kept (user_id, day, project_id, host_id, credit)
SELECT g.user_id, %(day)s, %(project)s, g.host_id, g.credit FROM grants g
 ORDER BY g.user_id, g.host_id
ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE
   SET credit = least(kept.credit::numeric + excluded.credit, {MOST_CREDIT})"""

# A person's own account has the id that their clients carry from project to project. The address alone, which anybody
# may enter, proves nothing. Erasing deletes the person's row last, and takes these with it.
WRITE_ACCOUNTS: Final = f"""
INSERT INTO accounting_accounttotal AS kept (project_id, project_user_id, user_id, total_credit, avg_credit, avg_at,
       as_of)
SELECT %(project)s, r.id, f.user_id, r.total, r.average, to_timestamp(r.average_at), %(as_of)s
  FROM read_users r
  JOIN (SELECT DISTINCT ON (fit) user_id, fit FROM ({_PEOPLE}) p ORDER BY fit, user_id) f ON f.fit = r.cpid
 ORDER BY r.id
ON CONFLICT (project_id, project_user_id) DO UPDATE
   SET user_id = excluded.user_id, total_credit = excluded.total_credit, avg_credit = excluded.avg_credit,
       avg_at = excluded.avg_at, as_of = excluded.as_of
 WHERE kept.as_of < excluded.as_of"""

# The transaction's last write, so that all of an export or nothing is stored. Which of these records were ours at the
# last import. Locks nothing.
ODD_OURS: Final = """
(SELECT 'computer' AS what, project_host_id AS number FROM accounting_grantedtotal
  WHERE project_id = %(project)s AND project_host_id = ANY (%(odd_hosts)s::bigint[]) ORDER BY 2 LIMIT 50)
 UNION ALL
(SELECT 'account', project_user_id FROM accounting_accounttotal
  WHERE project_id = %(project)s AND project_user_id = ANY (%(odd_users)s::bigint[]) ORDER BY 2 LIMIT 50)"""
DONE: Final = """
UPDATE accounting_statisticsimport
   SET etag = %(etag)s, last_modified = %(last_modified)s, update_time = %(as_of)s,
       first_update_time = coalesce(first_update_time, %(as_of)s), imported_at = clock_timestamp(),
       hosts_read = %(hosts_read)s, hosts_kept = %(hosts_kept)s, users_read = %(users_read)s,
       users_kept = %(users_kept)s, granted = %(granted)s, hosts_odd = %(hosts_odd)s, users_odd = %(users_odd)s,
       odd_ours = %(odd_ours)s
 WHERE project_id = %(project)s AND (update_time IS NULL OR update_time < %(as_of)s)"""

# Projects that answered when asked about themselves: the site knows that they are reachable.
FOLLOW: Final = """
INSERT INTO accounting_statisticsimport (project_id, is_on, url, account_email, etag, last_modified, hosts_read,
       hosts_kept, users_read, users_kept, granted, next_at, failures)
SELECT p.id, true, '', '', '', '', 0, 0, 0, 0, 0, %(now)s, 0
  FROM accounting_project p
 WHERE p.is_active AND (p.is_own AND %(has_project)s
       OR EXISTS (SELECT FROM accounting_projectprofile f WHERE f.project_id = p.id AND f.said_at IS NOT NULL))
ON CONFLICT (project_id) DO NOTHING"""
