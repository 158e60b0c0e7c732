"""Injection and repair of faults in a running lab. The only package of failover that acts on one."""
