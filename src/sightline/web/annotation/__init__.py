"""The pages of annotation projects: those of annotators, and those of the owner."""
