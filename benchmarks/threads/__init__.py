"""Which use of a few cores serves throughput, and which latency."""
