"""Validators and assimilators as scripts in any language, in a sandbox, without restarting the site."""
