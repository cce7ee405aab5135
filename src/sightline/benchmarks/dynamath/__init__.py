"""DynaMath."""
