CREATE TABLE platform (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, name varchar(254) NOT NULL,
  user_friendly_name varchar(254) NOT NULL, deprecated tinyint NOT NULL DEFAULT 0, PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE app (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, name varchar(254) NOT NULL,
  min_version int NOT NULL DEFAULT 0, deprecated smallint NOT NULL DEFAULT 0, user_friendly_name varchar(254) NOT NULL,
  homogeneous_redundancy smallint NOT NULL DEFAULT 0, weight double NOT NULL DEFAULT 1, beta smallint NOT NULL DEFAULT 0,
  target_nresults smallint NOT NULL DEFAULT 0, min_avg_pfc double NOT NULL DEFAULT 1,
  host_scale_check tinyint NOT NULL DEFAULT 0, homogeneous_app_version tinyint NOT NULL DEFAULT 0,
  non_cpu_intensive tinyint NOT NULL DEFAULT 0, locality_scheduling int NOT NULL DEFAULT 0,
  n_size_classes smallint NOT NULL DEFAULT 0, fraction_done_exact tinyint NOT NULL DEFAULT 0,
  PRIMARY KEY (id), UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE app_version (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, appid int NOT NULL, version_num int NOT NULL,
  platformid int NOT NULL, xml_doc mediumblob, min_core_version int NOT NULL DEFAULT 0,
  max_core_version int NOT NULL DEFAULT 0, deprecated tinyint NOT NULL DEFAULT 0,
  plan_class varchar(254) NOT NULL DEFAULT '', pfc_n double NOT NULL DEFAULT 0, pfc_avg double NOT NULL DEFAULT 0,
  pfc_scale double NOT NULL DEFAULT 0, expavg_credit double NOT NULL DEFAULT 0, expavg_time double NOT NULL DEFAULT 0,
  beta tinyint NOT NULL DEFAULT 0, PRIMARY KEY (id),
  UNIQUE KEY apvp (appid, platformid, version_num, plan_class(128))
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE user (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, email_addr varchar(254) NOT NULL, name varchar(254),
  authenticator varchar(254), country varchar(254), postal_code varchar(254) DEFAULT '',
  total_credit double NOT NULL DEFAULT 0, expavg_credit double NOT NULL DEFAULT 0, expavg_time double NOT NULL DEFAULT 0,
  global_prefs mediumblob, project_prefs mediumblob, teamid int NOT NULL DEFAULT 0, venue varchar(254) NOT NULL DEFAULT '',
  url varchar(254) DEFAULT '', send_email smallint NOT NULL DEFAULT 1, show_hosts smallint NOT NULL DEFAULT 1,
  posts smallint NOT NULL DEFAULT 0, seti_id int NOT NULL DEFAULT 0, seti_nresults int NOT NULL DEFAULT 0,
  seti_last_result_time int NOT NULL DEFAULT 0, seti_total_cpu double NOT NULL DEFAULT 0, signature varchar(254),
  has_profile smallint NOT NULL DEFAULT 0, cross_project_id varchar(254) NOT NULL DEFAULT '',
  passwd_hash varchar(254) NOT NULL DEFAULT '', email_validated smallint NOT NULL DEFAULT 0,
  donated smallint NOT NULL DEFAULT 0, login_token char(32) NOT NULL DEFAULT '', login_token_time double NOT NULL DEFAULT 0,
  previous_email_addr varchar(254) NOT NULL DEFAULT '', email_addr_change_time double NOT NULL DEFAULT 0,
  PRIMARY KEY (id), UNIQUE KEY user_email (email_addr), UNIQUE KEY user_auth (authenticator), KEY user_tid (teamid)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;
CREATE TABLE team (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, userid int NOT NULL, name varchar(254) NOT NULL,
  name_lc varchar(254), url varchar(254), type int NOT NULL DEFAULT 0, name_html varchar(254), description text,
  nusers int NOT NULL DEFAULT 0, country varchar(254), total_credit double NOT NULL DEFAULT 0,
  expavg_credit double NOT NULL DEFAULT 0, expavg_time double NOT NULL DEFAULT 0, seti_id int NOT NULL DEFAULT 0,
  ping_user int NOT NULL DEFAULT 0, ping_time int unsigned NOT NULL DEFAULT 0, joinable tinyint NOT NULL DEFAULT 1,
  mod_time timestamp NOT NULL DEFAULT current_timestamp ON UPDATE current_timestamp,
  PRIMARY KEY (id), UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;
CREATE TABLE team_admin (teamid int NOT NULL, userid int NOT NULL, create_time int NOT NULL, rights int NOT NULL)
  ENGINE=InnoDB;
CREATE TABLE team_delta (
  userid int NOT NULL, teamid int NOT NULL, timestamp int NOT NULL, joining tinyint NOT NULL,
  total_credit double NOT NULL, KEY team_delta_teamid (teamid, userid)
) ENGINE=InnoDB;
CREATE TABLE host (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, userid int NOT NULL DEFAULT 0,
  rpc_seqno int NOT NULL DEFAULT 0, rpc_time int NOT NULL DEFAULT 0, total_credit double NOT NULL DEFAULT 0,
  expavg_credit double NOT NULL DEFAULT 0, expavg_time double NOT NULL DEFAULT 0, timezone int NOT NULL DEFAULT 0,
  domain_name varchar(254) DEFAULT '', serialnum varchar(254) DEFAULT '', last_ip_addr varchar(254) DEFAULT '',
  nsame_ip_addr int NOT NULL DEFAULT 0, on_frac double NOT NULL DEFAULT 0, connected_frac double NOT NULL DEFAULT 0,
  active_frac double NOT NULL DEFAULT 0, cpu_efficiency double NOT NULL DEFAULT 0,
  duration_correction_factor double NOT NULL DEFAULT 0, p_ncpus int NOT NULL DEFAULT 0, p_vendor varchar(254) DEFAULT '',
  p_model varchar(254) DEFAULT '', p_fpops double NOT NULL DEFAULT 0, p_iops double NOT NULL DEFAULT 0,
  p_membw double NOT NULL DEFAULT 0, os_name varchar(254) DEFAULT '', os_version varchar(254) DEFAULT '',
  m_nbytes double NOT NULL DEFAULT 0, m_cache double NOT NULL DEFAULT 0, m_swap double NOT NULL DEFAULT 0,
  d_total double NOT NULL DEFAULT 0, d_free double NOT NULL DEFAULT 0, d_boinc_used_total double NOT NULL DEFAULT 0,
  d_boinc_used_project double NOT NULL DEFAULT 0, d_boinc_max double NOT NULL DEFAULT 0,
  n_bwup double NOT NULL DEFAULT 0, n_bwdown double NOT NULL DEFAULT 0, credit_per_cpu_sec double NOT NULL DEFAULT 0,
  venue varchar(254) NOT NULL DEFAULT '', nresults_today int NOT NULL DEFAULT 0, avg_turnaround double NOT NULL DEFAULT 0,
  host_cpid varchar(254) DEFAULT '', external_ip_addr varchar(254) DEFAULT '', max_results_day int NOT NULL DEFAULT 0,
  error_rate double NOT NULL DEFAULT 0, product_name varchar(254) NOT NULL DEFAULT '',
  gpu_active_frac double NOT NULL DEFAULT 0, p_ngpus int NOT NULL DEFAULT 0, p_gpu_fpops double NOT NULL DEFAULT 0,
  misc text, PRIMARY KEY (id), KEY host_user (userid), KEY host_avg (expavg_credit), KEY host_cpid (host_cpid)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE host_app_version (
  host_id int NOT NULL, app_version_id int NOT NULL, pfc_n double NOT NULL DEFAULT 0, pfc_avg double NOT NULL DEFAULT 0,
  et_n double NOT NULL DEFAULT 0, et_avg double NOT NULL DEFAULT 0, et_var double NOT NULL DEFAULT 0,
  et_q double NOT NULL DEFAULT 0, max_jobs_per_day int NOT NULL DEFAULT 0, n_jobs_today int NOT NULL DEFAULT 0,
  turnaround_n double NOT NULL DEFAULT 0, turnaround_avg double NOT NULL DEFAULT 0,
  turnaround_var double NOT NULL DEFAULT 0, turnaround_q double NOT NULL DEFAULT 0,
  consecutive_valid int NOT NULL DEFAULT 0, UNIQUE KEY hap (host_id, app_version_id)
) ENGINE=InnoDB;
CREATE TABLE workunit (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, appid int NOT NULL, name varchar(254) NOT NULL,
  xml_doc blob, batch int NOT NULL DEFAULT 0, rsc_fpops_est double NOT NULL DEFAULT 0,
  rsc_fpops_bound double NOT NULL DEFAULT 0, rsc_memory_bound double NOT NULL DEFAULT 0,
  rsc_disk_bound double NOT NULL DEFAULT 0, need_validate smallint NOT NULL DEFAULT 0,
  canonical_resultid int NOT NULL DEFAULT 0, canonical_credit double NOT NULL DEFAULT 0,
  transition_time int NOT NULL DEFAULT 0, delay_bound int NOT NULL DEFAULT 0, error_mask int NOT NULL DEFAULT 0,
  file_delete_state int NOT NULL DEFAULT 0, assimilate_state int NOT NULL DEFAULT 0, hr_class int NOT NULL DEFAULT 0,
  opaque double NOT NULL DEFAULT 0, min_quorum int NOT NULL DEFAULT 1, target_nresults int NOT NULL DEFAULT 1,
  max_error_results int NOT NULL DEFAULT 3, max_total_results int NOT NULL DEFAULT 10,
  max_success_results int NOT NULL DEFAULT 6, result_template_file varchar(63) NOT NULL DEFAULT '',
  priority int NOT NULL DEFAULT 0, mod_time timestamp NOT NULL DEFAULT current_timestamp ON UPDATE current_timestamp,
  rsc_bandwidth_bound double NOT NULL DEFAULT 0, fileset_id int NOT NULL DEFAULT 0, app_version_id int NOT NULL DEFAULT 0,
  transitioner_flags tinyint NOT NULL DEFAULT 0, size_class smallint NOT NULL DEFAULT -1,
  keywords varchar(254) NOT NULL DEFAULT '', app_version_num int NOT NULL DEFAULT 0,
  PRIMARY KEY (id), UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE result (
  id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, workunitid int NOT NULL, server_state int NOT NULL DEFAULT 0,
  outcome int NOT NULL DEFAULT 0, client_state int NOT NULL DEFAULT 0, hostid int NOT NULL DEFAULT 0,
  userid int NOT NULL DEFAULT 0, report_deadline int NOT NULL DEFAULT 0, sent_time int NOT NULL DEFAULT 0,
  received_time int NOT NULL DEFAULT 0, name varchar(254) NOT NULL, cpu_time double NOT NULL DEFAULT 0, xml_doc_in blob,
  xml_doc_out blob, stderr_out blob, batch int NOT NULL DEFAULT 0, file_delete_state int NOT NULL DEFAULT 0,
  validate_state int NOT NULL DEFAULT 0, claimed_credit double NOT NULL DEFAULT 0, granted_credit double NOT NULL DEFAULT 0,
  opaque double NOT NULL DEFAULT 0, random int NOT NULL DEFAULT 0, app_version_num int NOT NULL DEFAULT 0,
  appid int NOT NULL DEFAULT 0, exit_status int NOT NULL DEFAULT 0, teamid int NOT NULL DEFAULT 0,
  priority int NOT NULL DEFAULT 0, mod_time timestamp NOT NULL DEFAULT current_timestamp ON UPDATE current_timestamp,
  elapsed_time double NOT NULL DEFAULT 0, flops_estimate double NOT NULL DEFAULT 0, app_version_id int NOT NULL DEFAULT 0,
  runtime_outlier tinyint NOT NULL DEFAULT 0, size_class smallint NOT NULL DEFAULT -1,
  peak_working_set_size double NOT NULL DEFAULT 0, peak_swap_size double NOT NULL DEFAULT 0,
  peak_disk_usage double NOT NULL DEFAULT 0, PRIMARY KEY (id), UNIQUE KEY name (name), KEY res_wuid (workunitid)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE batch (
  id int NOT NULL AUTO_INCREMENT, user_id int NOT NULL, create_time int NOT NULL, logical_start_time double NOT NULL DEFAULT 0,
  logical_end_time double NOT NULL DEFAULT 0, est_completion_time double NOT NULL DEFAULT 0, njobs int NOT NULL DEFAULT 0,
  fraction_done double NOT NULL DEFAULT 0, nerror_jobs int NOT NULL DEFAULT 0, state int NOT NULL DEFAULT 0,
  completion_time double NOT NULL DEFAULT 0, credit_estimate double NOT NULL DEFAULT 0,
  credit_canonical double NOT NULL DEFAULT 0, credit_total double NOT NULL DEFAULT 0, name varchar(255) NOT NULL,
  app_id int NOT NULL, project_state int NOT NULL DEFAULT 0, description varchar(255) NOT NULL DEFAULT '',
  expire_time double NOT NULL DEFAULT 0, PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE user_submit (
  user_id int NOT NULL, quota double NOT NULL DEFAULT 1, logical_start_time double NOT NULL DEFAULT 0,
  submit_all tinyint NOT NULL DEFAULT 0, manage_all tinyint NOT NULL DEFAULT 0, max_jobs_in_progress int NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id)
) ENGINE=InnoDB;
CREATE TABLE user_submit_app (user_id int NOT NULL, app_id int NOT NULL, manage tinyint NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, app_id)) ENGINE=InnoDB;
CREATE TABLE job_file (id int NOT NULL AUTO_INCREMENT, name varchar(255) NOT NULL, create_time double NOT NULL,
  delete_time double NOT NULL, PRIMARY KEY (id), UNIQUE KEY jf_name (name)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE batch_file_assoc (batch_id int NOT NULL, job_file_id int NOT NULL, UNIQUE KEY bfa (job_file_id, batch_id))
  ENGINE=InnoDB;
CREATE TABLE msg_from_host (id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, hostid int NOT NULL,
  variety varchar(254) NOT NULL, handled smallint NOT NULL DEFAULT 0, xml mediumtext, PRIMARY KEY (id)) ENGINE=InnoDB;
CREATE TABLE msg_to_host (id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, hostid int NOT NULL,
  variety varchar(254) NOT NULL, handled smallint NOT NULL DEFAULT 0, xml mediumtext, PRIMARY KEY (id)) ENGINE=InnoDB;
CREATE TABLE assignment (id int NOT NULL AUTO_INCREMENT, create_time int NOT NULL, target_id int NOT NULL,
  target_type int NOT NULL, multi int NOT NULL, workunitid int NOT NULL, resultid int NOT NULL DEFAULT 0,
  PRIMARY KEY (id)) ENGINE=InnoDB;
CREATE TABLE badge (id int NOT NULL AUTO_INCREMENT, create_time double NOT NULL, type tinyint NOT NULL,
  name varchar(255) NOT NULL, title varchar(255) NOT NULL, description varchar(255) NOT NULL DEFAULT '',
  image_url varchar(255) NOT NULL DEFAULT '', level varchar(255) NOT NULL DEFAULT '', tags varchar(255) NOT NULL DEFAULT '',
  sql_rule varchar(255) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE badge_user (badge_id int NOT NULL, user_id int NOT NULL, create_time double NOT NULL,
  reassign_time double NOT NULL, UNIQUE KEY bu (user_id, badge_id)) ENGINE=InnoDB;
CREATE TABLE badge_team (badge_id int NOT NULL, team_id int NOT NULL, create_time double NOT NULL,
  reassign_time double NOT NULL, UNIQUE KEY bt (team_id, badge_id)) ENGINE=InnoDB;
CREATE TABLE credit_user (userid int NOT NULL, appid int NOT NULL, njobs int NOT NULL, total double NOT NULL,
  expavg double NOT NULL, expavg_time double NOT NULL, credit_type int NOT NULL,
  PRIMARY KEY (userid, appid, credit_type)) ENGINE=InnoDB;
CREATE TABLE credit_team (teamid int NOT NULL, appid int NOT NULL, njobs int NOT NULL, total double NOT NULL,
  expavg double NOT NULL, expavg_time double NOT NULL, credit_type int NOT NULL,
  PRIMARY KEY (teamid, appid, credit_type)) ENGINE=InnoDB;
CREATE TABLE user_deleted (userid int NOT NULL, public_cross_project_id varchar(254) NOT NULL, create_time double NOT NULL,
  PRIMARY KEY (userid)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE host_deleted (hostid int NOT NULL, public_cross_project_id varchar(254) NOT NULL, create_time double NOT NULL,
  PRIMARY KEY (hostid)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE consent_type (id int NOT NULL AUTO_INCREMENT, shortname varchar(255) NOT NULL, description varchar(255) NOT NULL,
  enabled int NOT NULL DEFAULT 0, project_specific int NOT NULL DEFAULT 0, privacypref int NOT NULL DEFAULT 0,
  PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE consent (id int NOT NULL AUTO_INCREMENT, userid int NOT NULL, consent_type_id int NOT NULL,
  consent_time int NOT NULL, consent_flag tinyint NOT NULL, consent_not_required tinyint NOT NULL DEFAULT 0,
  source varchar(255) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY consent_userid (userid)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE profile (userid int NOT NULL, response1 text, PRIMARY KEY (userid)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE thread (id int NOT NULL AUTO_INCREMENT, owner int NOT NULL, title varchar(254) NOT NULL, PRIMARY KEY (id))
  ENGINE=MyISAM DEFAULT CHARSET=latin1;
CREATE TABLE post (id int NOT NULL AUTO_INCREMENT, thread int NOT NULL, user int NOT NULL, content text, PRIMARY KEY (id))
  ENGINE=MyISAM DEFAULT CHARSET=latin1;
CREATE TABLE private_messages (id int NOT NULL AUTO_INCREMENT, userid int NOT NULL, content text, PRIMARY KEY (id))
  ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE friend (user_src int NOT NULL, user_dest int NOT NULL) ENGINE=InnoDB;
