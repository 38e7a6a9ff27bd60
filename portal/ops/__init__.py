"""Operation of the site: health, metrics, logs, system checks, the cache, optional mails, removal of expired rows."""
