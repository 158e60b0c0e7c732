"""nftables of one namespace: transactions, rules as messages, counters."""
