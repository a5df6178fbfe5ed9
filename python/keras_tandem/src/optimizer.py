"""What optimizers do that is the backend's."""
from keras.src.optimizers import base_optimizer

from keras_tandem.src import replicas


class BackendOptimizer(base_optimizer.BaseOptimizer):
    """Updates are traced with the step and fused by the engine, so Keras's own code serves as it is. In replicas it runs once, with the gradients' sum."""

    def apply_gradients(self, grads_and_vars):
        gradients, variables = zip(*grads_and_vars)
        return replicas.merged(lambda g: base_optimizer.BaseOptimizer.apply_gradients(self, list(zip(g, variables))), gradients)

    def apply(self, grads, trainable_variables=None):
        if replicas.several() is None:
            return super().apply(grads, trainable_variables)
        return replicas.merged(lambda g: self.apply(g, trainable_variables), grads)
