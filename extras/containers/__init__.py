"""Validators and assimilators as scripts in any language, in a sandbox, without a restart of the site."""
