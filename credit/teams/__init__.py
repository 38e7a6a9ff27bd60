"""Teams of volunteers: membership is voluntary, and shown only on the project's own pages."""
