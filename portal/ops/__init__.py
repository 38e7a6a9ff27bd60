"""Running the site: health, metrics, logs, system checks, the cache, optional mails, clean-up of expired rows."""
