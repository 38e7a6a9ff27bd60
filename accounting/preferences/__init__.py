"""The page of computing preferences: reading, saving, its forms and its words."""
