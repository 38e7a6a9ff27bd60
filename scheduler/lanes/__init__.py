"""Jobs that wait for certain computers: what there is, and what operators do if nobody comes for them."""
