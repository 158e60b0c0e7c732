"""Traffic: RoCEv2 on the wire, queue pairs, the I/O engine that drives all hosts of a lab, and traffic patterns."""
