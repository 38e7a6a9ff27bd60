"""Previews: an app's last granted workunits, replayed under its settings as they are and as they would be."""
