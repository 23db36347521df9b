"""The meaning of a call: who may make it, its model, its limits, its answer. Knows neither gRPC nor HTTP."""
