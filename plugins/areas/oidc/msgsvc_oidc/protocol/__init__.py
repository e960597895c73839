"""The protocol without I/O: requests, records and a time in; decisions out."""
