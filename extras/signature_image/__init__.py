"""Signature images: a small picture for forums and web pages, with a link that its owner can revoke."""
