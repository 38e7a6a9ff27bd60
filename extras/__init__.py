"""Apps that a site can do without, each in its own folder and queried through `portal.extras`."""
