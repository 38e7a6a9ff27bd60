"""Pages of projects and keywords, and the site's records of projects: its own, and the key that signs addresses."""
