"""The site's own requests to other servers: one fetcher for HTTP, with limits, that reaches only public addresses."""
