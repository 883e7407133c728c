"""Other packages' interfaces, name for name, computed by Strobe."""
