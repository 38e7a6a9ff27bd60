CREATE TABLE su_project (
  id int NOT NULL AUTO_INCREMENT, create_time double NOT NULL DEFAULT 0, name varchar(254) NOT NULL, url varchar(254) NOT NULL,
  web_rpc_url_base varchar(254) NOT NULL DEFAULT '', url_signature varchar(1024) NOT NULL DEFAULT '',
  share double NOT NULL DEFAULT 10, status tinyint NOT NULL DEFAULT 2, avg_ec double NOT NULL DEFAULT 0,
  avg_ec_adjusted double NOT NULL DEFAULT 0, web_url varchar(254) NOT NULL DEFAULT '',
  authenticator varchar(254) NOT NULL DEFAULT '', nhosts int NOT NULL DEFAULT 0, PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE su_user_keyword (
  user_id int NOT NULL, keyword_id int NOT NULL, yesno smallint NOT NULL, UNIQUE KEY (user_id, keyword_id)
) ENGINE=InnoDB;
CREATE TABLE su_account (
  user_id int NOT NULL, project_id int NOT NULL, create_time double NOT NULL DEFAULT 0,
  authenticator varchar(254) NOT NULL DEFAULT '', state smallint NOT NULL DEFAULT 1, retry_time double NOT NULL DEFAULT 0,
  cpu_ec double NOT NULL DEFAULT 0, cpu_time double NOT NULL DEFAULT 0, gpu_ec double NOT NULL DEFAULT 0,
  gpu_time double NOT NULL DEFAULT 0, njobs_success int NOT NULL DEFAULT 0, njobs_fail int NOT NULL DEFAULT 0,
  opt_out tinyint NOT NULL DEFAULT 0, email_addr varchar(254) NOT NULL DEFAULT '',
  passwd_hash varchar(254) NOT NULL DEFAULT '', name varchar(254) NOT NULL DEFAULT '',
  UNIQUE KEY (user_id, project_id), KEY account_state (state)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE su_host_project (
  host_id int NOT NULL, project_id int NOT NULL, last_rpc double NOT NULL DEFAULT 0, active tinyint NOT NULL DEFAULT 0,
  requested tinyint NOT NULL DEFAULT 0, cpu_ec double NOT NULL DEFAULT 0, cpu_time double NOT NULL DEFAULT 0,
  gpu_ec double NOT NULL DEFAULT 0, gpu_time double NOT NULL DEFAULT 0, njobs_success int NOT NULL DEFAULT 0,
  njobs_fail int NOT NULL DEFAULT 0, project_host_id int NOT NULL DEFAULT 0,
  UNIQUE KEY (host_id, project_id), KEY project_host (project_id, project_host_id)
) ENGINE=InnoDB;
CREATE TABLE su_accounting (
  id int NOT NULL AUTO_INCREMENT, create_time double NOT NULL DEFAULT 0, cpu_ec_delta double NOT NULL DEFAULT 0,
  cpu_ec_total double NOT NULL DEFAULT 0, gpu_ec_delta double NOT NULL DEFAULT 0, gpu_ec_total double NOT NULL DEFAULT 0,
  cpu_time_delta double NOT NULL DEFAULT 0, cpu_time_total double NOT NULL DEFAULT 0,
  gpu_time_delta double NOT NULL DEFAULT 0, gpu_time_total double NOT NULL DEFAULT 0,
  nactive_hosts int NOT NULL DEFAULT 0, nactive_hosts_gpu int NOT NULL DEFAULT 0, nactive_users int NOT NULL DEFAULT 0,
  njobs_success_delta int NOT NULL DEFAULT 0, njobs_success_total int NOT NULL DEFAULT 0,
  njobs_fail_delta int NOT NULL DEFAULT 0, njobs_fail_total int NOT NULL DEFAULT 0, PRIMARY KEY (id)
) ENGINE=InnoDB;
CREATE TABLE su_accounting_project (
  id int NOT NULL AUTO_INCREMENT, create_time double NOT NULL DEFAULT 0, project_id int NOT NULL DEFAULT 0,
  share double NOT NULL DEFAULT 0, cpu_ec_delta double NOT NULL DEFAULT 0, cpu_ec_total double NOT NULL DEFAULT 0,
  gpu_ec_delta double NOT NULL DEFAULT 0, gpu_ec_total double NOT NULL DEFAULT 0, cpu_time_delta double NOT NULL DEFAULT 0,
  cpu_time_total double NOT NULL DEFAULT 0, gpu_time_delta double NOT NULL DEFAULT 0,
  gpu_time_total double NOT NULL DEFAULT 0, njobs_success_delta int NOT NULL DEFAULT 0,
  njobs_success_total int NOT NULL DEFAULT 0, njobs_fail_delta int NOT NULL DEFAULT 0,
  njobs_fail_total int NOT NULL DEFAULT 0, nhosts int NOT NULL DEFAULT 0, KEY (project_id), PRIMARY KEY (id)
) ENGINE=InnoDB;
CREATE TABLE su_accounting_user (
  id int NOT NULL AUTO_INCREMENT, create_time double NOT NULL DEFAULT 0, user_id int NOT NULL DEFAULT 0,
  cpu_ec_delta double NOT NULL DEFAULT 0, cpu_ec_total double NOT NULL DEFAULT 0, gpu_ec_delta double NOT NULL DEFAULT 0,
  gpu_ec_total double NOT NULL DEFAULT 0, cpu_time_delta double NOT NULL DEFAULT 0,
  cpu_time_total double NOT NULL DEFAULT 0, gpu_time_delta double NOT NULL DEFAULT 0,
  gpu_time_total double NOT NULL DEFAULT 0, njobs_success_delta int NOT NULL DEFAULT 0,
  njobs_success_total int NOT NULL DEFAULT 0, njobs_fail_delta int NOT NULL DEFAULT 0,
  njobs_fail_total int NOT NULL DEFAULT 0, KEY (user_id), PRIMARY KEY (id)
) ENGINE=InnoDB;
ALTER TABLE host
  ADD COLUMN p_features varchar(512) NOT NULL DEFAULT '', ADD COLUMN boinc_client_version varchar(64) NOT NULL DEFAULT '',
  ADD COLUMN n_usable_coprocs tinyint NOT NULL DEFAULT 0, ADD COLUMN p_vm_extensions_disabled tinyint NOT NULL DEFAULT 0,
  ADD COLUMN virtualbox_version varchar(64) NOT NULL DEFAULT '', ADD COLUMN cpu_ec double NOT NULL DEFAULT 0,
  ADD COLUMN gpu_ec double NOT NULL DEFAULT 0, ADD COLUMN cpu_time double NOT NULL DEFAULT 0,
  ADD COLUMN gpu_time double NOT NULL DEFAULT 0, ADD COLUMN njobs_success int NOT NULL DEFAULT 0,
  ADD COLUMN njobs_fail int NOT NULL DEFAULT 0;
