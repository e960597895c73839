"""Creates new plugins: packages that install, pass the conformance kit, and show where to continue."""
