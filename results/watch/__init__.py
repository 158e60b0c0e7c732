"""Display of a running lab for network engineers, on terminals and in pipes: problems first. Pure."""
