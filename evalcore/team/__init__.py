"""People who sign in from their own machines: the provider, sessions, invitations, and the studies of a server."""
