"""The conformance kit: tests that every channel and every area plugin has to pass."""
