"""The LAG room: LACP (802.1AX) as pure machines, its speaker, and the two datapaths a host can bond with."""
