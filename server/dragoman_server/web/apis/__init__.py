"""The APIs over HTTP, each in a file, the page, and the probes of operators."""
