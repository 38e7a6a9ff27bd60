"""The scheduler RPC: who asks, what came back, which jobs go out, and the reply."""
