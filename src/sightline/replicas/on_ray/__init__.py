"""Ray: the connection to a cluster, and what runs on its nodes."""
