"""The public data sets: fetched at a pinned revision, and checked image by image."""
