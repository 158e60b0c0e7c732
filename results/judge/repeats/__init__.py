"""Several runs of one drill judged as one."""
