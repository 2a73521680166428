"""What time takes: payloads archived, then erased, keys kept until they are forgotten."""
