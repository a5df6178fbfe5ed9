from keras.src.optimizers import base_optimizer


class BackendOptimizer(base_optimizer.BaseOptimizer):
    """Updates are traced with the step and fused by the engine, so Keras's own code serves as it is."""
