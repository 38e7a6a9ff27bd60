"""What no deployment needs: benchmarks, and other tools of those who work on the site."""
