-- The account of each key and host token: the host and its owner, the projects of both, and the owner's settings.
-- Locks nothing. Not one of a key that was revoked, of a blocked account, or of another account's host.
--
-- Joins by "= ANY (ARRAY[key])" make PostgreSQL look each row up by its key. By "=" it might read whole tables while
-- they are small, and by "merged_into_id IS NULL" nearly all computers.
-- Each row is a JSON object, which accounting/rpc/rows.py reads by the names of its fields. It is sent as text: totals
-- may have more digits than 64 bits hold, and JSON's numbers would lose them.
SELECT row_to_json(account)::text
  FROM (
    SELECT q.n, u.id AS user_id, u.name AS user_name, u.email, h.id AS host_id, h.token, h.ncpus, h.p_fpops, h.p_model,
           h.coprocs, encode(h.hardware_digest, 'hex') AS hardware_digest, h.venue,
           (extract(epoch FROM l.last_at) * 1000000)::bigint AS last_at_us, l.client_now, l.level, l.contacts,
           h.platform_name AS platform, l.excluded_types, l.answer_digest, l.answers_logged, l.same_answers,
           h.host_cpid AS cpid, k.id AS key_id, k.last_used_at AS key_used_at,
           (NOT %(confirmed_only)s::boolean OR EXISTS (
             SELECT FROM account_emailaddress e WHERE e.user_id = u.id AND e.email = u.email AND e.verified))
             AS may_have_keys,
           (SELECT json_agg(project) FROM (
              SELECT p.project_id, p.reported, p.earlier, p.handed, p.credited, p.pending, p.dropped, p.listed,
                     p.restart, p.broken, p.suspended, p.told_suspended, p.no_new_work, p.excluded, p.no_rsc,
                     p.update_asked, p.drop_waiting, p.state->'troubles' AS troubles, p.state->'at' AS listed_at,
                     p.state->'hostid' AS hostid, p.state->'by_owner' AS by_owner, p.state->'faulty' AS faulty,
                     p.state->'unsummed' AS unsummed
                FROM accounting_hostproject p WHERE p.host_id = h.id) project) AS projects,
           (SELECT json_agg(choice) FROM (
              SELECT c.project_id, c.is_chosen, c.resource_share, encode(c.account_key, 'escape') AS account_key,
                     c.total_ec, c.avg_ec, (extract(epoch FROM c.avg_at) * 1000000)::bigint AS summed_at
                FROM accounting_userproject c WHERE c.user_id = u.id) choice) AS choices,
           (SELECT row_to_json(wishes) FROM (
              SELECT s.preferences, s.preferences_at, s.keywords_yes, s.keywords_no, s.team_name, s.no_project_notices,
                     s.sends_tasks
                FROM accounting_accountsettings s WHERE s.user_id = u.id) wishes) AS settings
      FROM unnest(%(key_hashes)s::bytea[], %(tokens)s::text[]) WITH ORDINALITY AS q(key_hash, token, n)
      JOIN portal_clientkey k ON k.key_hash = ANY (ARRAY[q.key_hash]) AND k.revoked_at IS NULL
      JOIN portal_user u ON u.id = ANY (ARRAY[k.user_id]) AND u.is_active
      JOIN portal_host h ON h.token = ANY (ARRAY[q.token]) AND h.owner_id + 0 = u.id
           AND coalesce(h.merged_into_id, 0) = 0
      JOIN accounting_hostledger l ON l.host_id = ANY (ARRAY[h.id])) account
