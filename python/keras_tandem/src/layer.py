class BackendLayer:
    """Layers need nothing of the backend: what they compute is traced."""
