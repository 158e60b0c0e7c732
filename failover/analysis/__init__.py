"""Analysis of records and events: outages, phases, noise, ports. Pure."""
