"""What the site itself asks of other servers: one fetcher for HTTP, with limits, that reaches public addresses only."""
