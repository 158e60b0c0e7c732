"""Third-party traffic tools that the benchmark compares with: iperf3, sockperf."""
