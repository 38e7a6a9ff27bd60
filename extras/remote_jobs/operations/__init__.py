"""The operations of remote job submission: each is a function of the caller, the request and the time."""
