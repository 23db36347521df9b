"""What callers of gRPC notice of load on the HTTP door."""
