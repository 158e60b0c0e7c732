"""Third-party traffic tools that bench compares with: iperf3, sockperf."""
