"""The site on several machines, for tests: PostgreSQL under Patroni, etcd, web nodes behind nginx, workers, Valkey."""
