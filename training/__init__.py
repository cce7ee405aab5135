"""The training of the embedded model and the adapter study. Not part of the package."""
