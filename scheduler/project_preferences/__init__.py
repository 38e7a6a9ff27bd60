"""What volunteers prefer for this project: the page, and how it is stored."""
