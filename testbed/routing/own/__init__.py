"""BGP daemons of switches that bring their own configuration, which runs unchanged."""
