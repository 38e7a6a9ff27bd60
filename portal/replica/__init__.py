"""Reading from a replica of the database, where what it has is new enough."""
