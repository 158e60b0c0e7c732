"""Pool for everything that makes several runs: processes of this machine, or the workers of a dask scheduler."""
