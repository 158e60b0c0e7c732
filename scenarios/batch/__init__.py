"""Many runs: suites for CI, and pools of workers here or elsewhere."""
