"""A run in third-party formats: a trace for Perfetto, captured control frames for Wireshark."""
