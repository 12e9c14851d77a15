"""The layers: one ComponentResource a file, the pure functions that build what they register, and the settings."""
