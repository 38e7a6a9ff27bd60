"""The scheduler RPC: identify the client, take reports, send jobs, and reply."""
