"""How a real server answers under load: latency, capacity, and what gRPC and tokenizing cost."""
