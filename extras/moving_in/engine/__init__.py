"""The rules by which another site's rows become facts. Pure: no Django, no database, no clock."""
