"""Pages of projects and keywords, and what the site keeps of projects: its own, and the key that signs addresses."""
