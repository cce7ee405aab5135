"""The viewer: `sightline serve`."""
