"""Programs that run inside a guest as its first process; standard library only, nothing of the project."""
