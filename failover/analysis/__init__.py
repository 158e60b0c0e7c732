"""From records and events to figures: outages, phases, noise, ports. Pure."""
