"""tf.experimental.ExtensionType and dispatch: TensorFlow's own outputs."""

import typing

import numpy as np
import pytest

import tandem as tf


class Masked(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    def __validate__(self):
        assert self.mask.dtype.is_bool, "mask.dtype must be bool"
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    class Spec:
        def __init__(self, shape, dtype=tf.float32):
            self.values = tf.TensorSpec(shape, dtype)
            self.mask = tf.TensorSpec(shape, tf.bool)


class Network(tf.experimental.BatchableExtensionType):
    shape: tf.TensorShape
    work: tf.Tensor

    def __init__(self, work):
        self.work = tf.convert_to_tensor(work)
        self.shape = self.work.shape[:-1]


class Player(tf.experimental.ExtensionType):
    name: tf.Tensor
    attributes: typing.Mapping[str, tf.Tensor]
    lives: int = 3


class Node(tf.experimental.ExtensionType):
    value: tf.Tensor
    children: typing.Tuple["Node", ...] = ()


def test_fields_are_converted_checked_and_do_not_change():
    m = Masked([1, 2, 3], [True, True, False])
    assert repr(m) == (
        "Masked(values=<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>, "
        "mask=<tf.Tensor: shape=(3,), dtype=bool, numpy=array([ True,  True, False])>)"
    )
    with pytest.raises(TypeError, match="mask: expected a Tensor, got 'NoneType'"):
        Masked([1, 2, 3], None)
    with pytest.raises(AssertionError, match="mask.dtype must be bool"):
        Masked([1, 2, 3], [0, 1, 0])
    with pytest.raises(ValueError, match="Shapes .*3.* and .*2.* are incompatible"):
        Masked([1, 2, 3], [True, False])
    with pytest.raises(AttributeError, match="Cannot mutate attribute `mask` outside the custom constructor of ExtensionType"):
        m.mask = [True]
    with pytest.raises(AttributeError, match="Cannot mutate"):
        del m.mask
    with pytest.raises(TypeError, match="missing 1 required argument: 'mask'"):
        Masked([1])
    with pytest.raises(TypeError, match="Unsupported type annotation"):

        class Wrong(tf.experimental.ExtensionType):
            x: list


def test_equality_is_of_types_and_of_all_values():
    a, b = Masked([1, 2], [True, False]), Masked([[3, 4], [5, 6]], [[False, True], [True, True]])
    assert (a == a).numpy() and not (a == Masked([1, 3], [True, False])).numpy()
    assert (a == b) is False and (a == a.values) is False


def test_nested_fields_and_specs():
    node = Node(3, [Node(5), Node(2)])
    assert [c.value.numpy() for c in node.children] == [5, 2] and isinstance(node.children, tuple)
    anne = Player("Anne", {"height": 8.3, "speed": 28.1})
    spec = tf.type_spec_from_value(anne)
    assert spec.name == tf.TensorSpec([], tf.string) and spec.lives == 3
    assert repr(spec.attributes) == (
        "ImmutableDict({'height': TensorSpec(shape=(), dtype=tf.float32, name=None), 'speed': TensorSpec(shape=(), dtype=tf.float32, name=None)})"
    )
    assert Masked.Spec([2], tf.int32).is_compatible_with(Masked([1, 2], [True, True]))
    assert not Masked.Spec([3], tf.int32).is_compatible_with(Masked([1, 2], [True, True]))


def test_functions_are_traced_for_each_type():
    traces = []

    @tf.function
    def doubled(m, times):
        traces.append(1)
        return Masked(m.values * times, m.mask)

    for values in ([1, 2], [3, 4]):
        np.testing.assert_array_equal(doubled(Masked(values, [True, False]), tf.constant(2)).values, [2 * v for v in values])
    assert len(traces) == 1
    doubled(Masked([1, 2, 3], [True, False, True]), tf.constant(2))
    assert len(traces) == 2

    @tf.function(input_signature=[Masked.Spec([None], tf.float32)])
    def total(m):
        return tf.reduce_sum(tf.where(m.mask, m.values, 0.0))

    assert total(Masked([1.0, 2.0, 4.0], [True, False, True])).numpy() == 5
    concrete = doubled.get_concrete_function(Masked.Spec([2], tf.int32), tf.TensorSpec([], tf.int32))
    np.testing.assert_array_equal(concrete(Masked([5, 6], [True, True]), tf.constant(3)).values, [15, 18])


def test_control_flow_over_them():
    @tf.function
    def fn(x, b):
        if b:
            x = Masked(x, tf.less(x, 0))
        else:
            x = Masked(x, tf.greater(x, 0))
        for _ in tf.range(5 if b else 7):
            x = Masked(x.values + 1 / 2, x.mask)
        return x

    x = fn(tf.constant([1.0, -2, 3]), tf.constant(True))
    np.testing.assert_array_equal(x.values, [3.5, 0.5, 5.5])
    np.testing.assert_array_equal(x.mask, [False, True, False])
    np.testing.assert_array_equal(fn(tf.constant([1.0, -2, 3]), tf.constant(False)).values, [4.5, 1.5, 6.5])


def test_datasets_and_maps_of_them():
    m = Masked(tf.reshape(range(20), [5, 4]), tf.ones([5, 4], tf.bool))
    rows = list(tf.data.Dataset.from_tensor_slices(m))
    assert len(rows) == 5 and rows[2].values.numpy().tolist() == [8, 9, 10, 11]
    source = tf.data.Dataset.from_generator(
        lambda: (Masked(range(3), [j % i != 0 for j in range(3)]) for i in range(2, 7)),
        output_signature=Masked.Spec([3], tf.int32),
    )
    batches = list(source.batch(2))
    assert [b.values.shape.as_list() for b in batches] == [[2, 3], [2, 3], [1, 3]]
    assert [x.mask.numpy().tolist() for x in source.batch(2).unbatch()][:2] == [[False, True, False], [False, True, True]]
    network = Network([[5.0, 3.0], [4.0, 2.0]])
    assert [n.shape.as_list() for n in tf.data.Dataset.from_tensor_slices(network)] == [[], []]
    mapped = tf.map_fn(lambda n: Network(n.work * 2), network)
    assert mapped.shape == [2] and mapped.work.numpy().tolist() == [[10, 6], [8, 4]]


def test_dispatch():
    @tf.experimental.dispatch_for_api(tf.stack)
    def stack(values: typing.List[Masked], axis=0):
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def unary(api, x):
        return Masked(api(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def binary(api, x, y):
        return Masked(api(x.values, y.values), x.mask & y.mask)

    try:
        x, y = Masked([1, -2, -3], [True, False, True]), Masked([[4], [5]], [[True], [False]])
        assert tf.stack([x, x]).values.shape == [2, 3]
        assert tf.abs(x).values.numpy().tolist() == [1, 2, 3]
        assert tf.ones_like(x, dtype=tf.float32).values.dtype == tf.float32
        assert tf.math.add(x, y).values.numpy().tolist() == [[5, 2, 1], [6, 3, 2]]
        assert tf.math.add(x, y).mask.numpy().tolist() == [[True, False, True], [False, False, False]]
    finally:
        for handler in (stack, unary, binary):
            tf.experimental.unregister_dispatch_for(handler)
    with pytest.raises(TypeError):
        tf.abs(x)
    with pytest.raises(ValueError, match="was not registered"):
        tf.experimental.unregister_dispatch_for(stack)
