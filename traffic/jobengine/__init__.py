"""Job engine: queue pairs on the wire. A job's workers connect sockets and clocks with the pure state machines."""
