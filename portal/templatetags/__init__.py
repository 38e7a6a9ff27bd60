"""Tags and filters of the templates: numbers with units, times, navigation, small drawings."""
