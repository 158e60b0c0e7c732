"""Chakra execution traces (MLCommons): read, matched between ranks, and run as a job."""
