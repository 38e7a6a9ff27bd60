"""Pages that everybody may read without an account: about, privacy, terms; and the demo account to look around in."""
