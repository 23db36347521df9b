"""The dashboard's picture: our own drawing of its queries, of a server under load and a real Prometheus."""
