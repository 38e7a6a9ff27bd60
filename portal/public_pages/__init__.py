"""What everybody may read without an account: about the site, privacy, terms; and the demo account to look around."""
