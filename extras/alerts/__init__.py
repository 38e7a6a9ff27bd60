"""Alerts: immediate messages to a volunteer, in a browser, by a webhook or by ntfy, and the page where they choose."""
