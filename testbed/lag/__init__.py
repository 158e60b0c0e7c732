"""Link aggregation: LACP (802.1AX) as pure state machines, its speaker, and the two host datapaths."""
