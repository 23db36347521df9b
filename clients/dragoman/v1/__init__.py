"""Messages and stubs of the wire contract `dragoman.v1`, generated from `proto/` by `make proto`."""
