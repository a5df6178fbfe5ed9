"""Profiles of Keras's TensorBoard callback."""
from tandem.profiler import experimental


def start_trace(logdir):
    experimental.start(logdir)


def stop_trace(save):
    experimental.stop(save=save)


def start_batch_trace(batch):
    return experimental.Trace("Profiled batch", step_num=batch).__enter__()


def stop_batch_trace(batch_trace_context):
    batch_trace_context.__exit__(None, None, None)
