"""Mails that win volunteers back whose computers have gone."""
