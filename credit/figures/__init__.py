"""Figures of jobs and credit, for the dashboard and the public status (portal/dashboard)."""
