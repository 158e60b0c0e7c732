"""A run in the formats of other programs: a trace for Perfetto, captured control frames for Wireshark."""
