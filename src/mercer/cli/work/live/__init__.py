"""The work of `mercer stream`: rows as they come, answered before they are learned."""
