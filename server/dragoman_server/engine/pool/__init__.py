"""Several engines of one model, as threads or as processes of their own."""
