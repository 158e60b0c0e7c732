"""Packets in and out of sockets in batches: sendmmsg, recvmmsg, io_uring."""
