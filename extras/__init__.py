"""Apps that a site can do without: each in a folder of its own, asked through `portal.extras`."""
