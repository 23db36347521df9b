"""What is spoken over HTTP: each API in a file, the page, and what those who run the server ask."""
