"""Batched socket I/O: sendmmsg, recvmmsg, io_uring."""
