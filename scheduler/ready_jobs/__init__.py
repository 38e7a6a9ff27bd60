"""The job cache of a process: jobs that it has leased from the queues and sends from memory, as BOINC's feeder does."""
