"""Tools for developing the site, which no deployment needs: benchmarks and others."""
