"""The account-manager RPC: read what is known of a computer, settle what it reports, write it, and reply."""
