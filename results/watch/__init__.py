"""A running lab as a network engineer looks at it, for terminals and pipes: what is wrong first. Pure."""
