"""The door of the plugin: what it declares, each handed on to the file that has it."""
