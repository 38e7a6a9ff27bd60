"""What the dashboard and the public status say of jobs and of credit (portal/dashboard)."""
