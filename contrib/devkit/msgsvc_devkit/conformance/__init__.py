"""The conformance kit: what every channel and every area plugin has to show."""
