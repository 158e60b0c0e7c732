"""Prometheus metrics of a running lab: the families and their samples (pure), and the process that serves them."""
