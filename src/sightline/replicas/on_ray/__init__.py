"""Ray: the connection to a cluster, what runs on its nodes, and replicas of a model as actors."""
