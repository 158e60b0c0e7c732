"""Multipath transport: each packet of a queue pair takes another path, and the sender denies bad ones. Pure."""
