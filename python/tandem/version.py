"""tf.version: the TensorFlow whose interface this is."""
VERSION = "2.21.0"
GIT_VERSION = "tandem"
COMPILER_VERSION = "tandem"
GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER = 2200, 0, 0
