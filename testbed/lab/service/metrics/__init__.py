"""What a running lab tells Prometheus: the families and their samples (pure), and the process that serves them."""
