"""Sites that move here: what their databases and folders have is read, translated and kept."""
