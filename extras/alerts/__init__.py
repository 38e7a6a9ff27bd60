"""Alerts: what a volunteer is told at once, in a browser, by a webhook or by ntfy, and the page where they choose."""
