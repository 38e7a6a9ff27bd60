"""The job cache of a process: jobs leased from the queues and sent from memory, like BOINC's feeder."""
