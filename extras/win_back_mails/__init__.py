"""Win-back mails to volunteers whose computers no longer report."""
