"""Mails to volunteers: which are due, and the page where volunteers choose theirs."""
