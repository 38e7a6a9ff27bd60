"""Pages of a volunteer's computers, and what their owner can do with them: wishes, contacts, merging two records."""
