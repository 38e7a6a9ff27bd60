-- Part of pick.sql and pick_elsewhere.sql: the JSON of `scheduler.engine.facts.Job` for a suitable job (p) of an app (a).
json_build_object('id', p.id, 'workunit_id', p.workunit_id, 'app_id', a.app_id, 'name', p.name,
  'fpops_est', p.fpops_est, 'fpops_bound', p.fpops_bound, 'memory_bytes', p.memory_bound_bytes,
  'disk_bytes', p.disk_bound_bytes, 'delay_bound_secs', p.delay_bound_secs, 'min_quorum', p.min_quorum,
\if :LANES
  'hr_class', p.hr_class, 'version_num', p.app_version_num, 'version_id', coalesce(p.bound_version_id, 0),
  'lane', p.lane,
\endif
  'details', json_build_object('workunit_name', p.workunit_name, 'command_line', p.command_line,
    'input_files', p.input_files, 'output_files', p.output_files))
