"""Previews: an app's last granted workunits, replayed under its current settings and under the proposed ones."""
