"""The operators' dashboard and the public status: figures of how the site runs, with their history.

`registry` says which figures there are; each app adds its own in ``ready()``. `record` takes them every ten minutes, so
no page counts anything. `rules` decides which need attention, `reads` puts together what pages show.
"""
