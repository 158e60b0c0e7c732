"""Faults done to a running lab, and undone. The only room of failover that acts on one."""
