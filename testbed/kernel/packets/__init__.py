"""Packet sockets, captures and the pcapng format."""
