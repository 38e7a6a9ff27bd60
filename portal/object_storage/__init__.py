"""Files in S3 object storage: settings, Django's storage class for it, and checks for contradictions."""
