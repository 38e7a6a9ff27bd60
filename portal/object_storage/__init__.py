"""Files in object storage that speaks S3: its settings, Django's storage class for it, and what contradicts it."""
