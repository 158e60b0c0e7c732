"""Reports of the IETF's benchmarking draft for AI training fabrics, from run folders."""
