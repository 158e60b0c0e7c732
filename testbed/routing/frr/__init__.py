"""FRR: the configuration of its daemons, their vty sockets, their log, and the processes of one switch."""
