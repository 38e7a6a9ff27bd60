"""Certificates: what a volunteer did, as far as they chose to show it, signed (docs/reference/certificates.md)."""
