"""Certificates: a volunteer's work, as far as they chose to show it, signed (docs/reference/certificates.md)."""
