"""Chakra execution traces (MLCommons): read, matched between ranks, and carried out as a job."""
