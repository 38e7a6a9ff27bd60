"""The account-manager RPC: read a computer's state, settle its report, write it, and reply."""
