"""Text with markup: read into what is translated and the tags around it. Pure."""
