"""Queue pairs on the wire: what a job's workers do with sockets, clocks and the pure machines."""
