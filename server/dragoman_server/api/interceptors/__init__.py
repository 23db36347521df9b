"""Interceptors of every call: they count it, and refuse what is malformed or from unknown callers."""
