"""tf.random: the global generator, seeds, generators with state, and functions of a seed alone."""
import enum

import numpy as np

from tandem import _core
from tandem import errors
from tandem._arrays import cast, reshape
from tandem._dtypes import as_dtype
from tandem._face import api, convert, float_tensor, ints, number, ops, shape as _shape_argument, tensor
from tandem._variable import Variable, eagerly

int32, int64, float32 = as_dtype("int32"), as_dtype("int64"), as_dtype("float32")


class Algorithm(enum.Enum):
    PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3


# --- keys: two words, a seed and a place in its stream --------------------------------------------------------------------------


def _words(*parts):
    """Two words out of any number of integers, mixed so that near seeds are far apart."""
    a, b = 0x9E3779B97F4A7C15, 0
    for p in parts:
        a = (a ^ (int(p) & 0xFFFFFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        a ^= a >> 31
        b = (b * 31 + a) & 0xFFFFFFFF
    return np.array([a >> 32, b], np.uint32)


class _Stream:
    """A key that moves on with each use; in a compiled function it is a variable that the function writes."""

    def __init__(self, words):
        with eagerly():
            self._state = _core.Variable(convert(words))

    def next(self):
        key = self._state.read()
        self._state.store(ops.add(key, convert(np.array([0, 1], np.uint32))))
        return key


class _Global:
    seed = None
    stream = None
    by_op = {}


def set_seed(seed):
    """Restarts all streams: the same program gives the same numbers."""
    _Global.seed = int(seed)
    _Global.stream, _Global.by_op = None, {}


def _next_key(seed=None):
    if seed is not None:
        seed = int(number(seed))
        stream = _Global.by_op.get(seed)
        if stream is None:
            stream = _Global.by_op[seed] = _Stream(_words(_Global.seed or 0, seed, 1))
        return stream.next()
    if _Global.stream is None:
        entropy = np.random.SeedSequence().entropy if _Global.seed is None else _Global.seed
        _Global.stream = _Stream(_words(entropy & 0xFFFFFFFFFFFFFFFF, 2))
    return _Global.stream.next()


def _stateless_key(seed):
    """A seed of two integers as a key."""
    seed = tensor(seed)
    if list(seed.shape) != [2]:
        raise errors.InvalidArgumentError(None, None, f"seed must have shape [2], not {list(seed.shape)}")
    if not seed.is_traced:
        return convert(_words(*seed.numpy().tolist()))
    low = ops.cast(seed, dtype="uint32")
    return ops.fold_in(ops.multiply(low, convert(np.array([0x9E3779B1, 0x85EBCA6B], np.uint32))), low[0])


# --- distributions over a key ---------------------------------------------------------------------------------------------------


def _floating(dtype):
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"random numbers of type {dtype.name} have no such distribution")
    return dtype


def _parameter(x, dtype):
    return convert(x, dtype) if isinstance(x, (int, float, np.ndarray, np.generic, list, tuple)) else tensor(x, dtype)


def _normal(key, shape, mean, stddev, dtype):
    dtype = _floating(dtype)
    made = ops.random_normal(key, None, None, shape=_extents(shape), dtype=dtype)
    return ops.add(ops.multiply(made, _parameter(stddev, dtype)), _parameter(mean, dtype))


def _truncated(key, shape, mean, stddev, dtype):
    dtype = _floating(dtype)
    made = ops.truncated_normal(key, None, None, shape=_extents(shape), dtype=dtype)
    return ops.add(ops.multiply(made, _parameter(stddev, dtype)), _parameter(mean, dtype))


def _uniform(key, shape, minval, maxval, dtype):
    dtype = as_dtype(dtype)
    if dtype.is_integer:
        if maxval is None:
            if minval is None or dtype.is_unsigned or minval == 0:
                bits = ops.random_bits(key, shape=_extents(shape))
                return ops.bitcast(bits, dtype=dtype) if dtype.size == 4 else cast(bits, dtype)
            raise ValueError("Must specify maxval for integer dtype " + dtype.name)
        low, high = _parameter(minval, dtype), _parameter(maxval, dtype)
        if not low.is_traced and not high.is_traced and np.any(low.numpy() >= high.numpy()):
            raise errors.InvalidArgumentError(None, None, f"Need minval < maxval, got {minval} >= {maxval}")
        return ops.random_int(key, low, high, shape=_extents(shape), dtype=dtype)
    made = ops.random_uniform(key, None, None, shape=_extents(shape), dtype=_floating(dtype))
    if maxval is None and isinstance(minval, (int, float)) and minval == 0 or (
        minval == 0 and maxval == 1 if isinstance(maxval, (int, float)) and isinstance(minval, (int, float)) else False
    ):
        return made
    low, high = _parameter(0 if minval is None else minval, dtype), _parameter(1 if maxval is None else maxval, dtype)
    return ops.add(ops.multiply(made, ops.subtract(high, low)), low)


def _extents(shape):
    return _shape_argument(shape)


def _gamma(key, shape, alpha, beta, dtype):
    dtype = _floating(dtype)
    alpha = _parameter(alpha, dtype)
    made = ops.gamma(key, alpha, shape=shape)
    return made if beta is None else ops.divide(made, _parameter(beta, dtype))


def _poisson(key, shape, lam, dtype):
    """Counts of arrivals: for small rates products of uniforms would do, this takes the quantile of one uniform by a sum of chances."""
    lam = cast(tensor(lam), "float64") if not isinstance(lam, (int, float)) else convert(float(lam), "float64")
    u = ops.random_uniform(key, None, None, shape=shape, dtype="float64")
    rate = ops.broadcast_to(lam, shape=u.dims)
    if rate.is_traced:
        from tandem._arrays import _needs_data

        raise _needs_data("tf.random.poisson")
    values, rates = u.numpy(), rate.numpy()
    large = rates > 500  # the normal approximation is closer than a float32 there
    out = np.floor(rates + np.sqrt(rates) * _quantile(values) + 0.5)
    chance = np.exp(-np.where(large, 0, rates))
    total, count = chance.copy(), np.zeros_like(rates)
    for n in range(1, 1200):
        more = (values > total) & ~large
        if not more.any():
            break
        count[more] += 1
        chance = chance * rates / n
        total = np.where(more, total + chance, total)
    return cast(convert(np.maximum(np.where(large, out, count), 0)), dtype)


def _quantile(p):
    return ops.ndtri(convert(np.clip(p, 1e-16, 1 - 1e-16))).numpy()


def _categorical(key, logits, num_samples, dtype):
    logits = float_tensor(logits, "categorical")
    if logits.ndim != 2:
        raise errors.InvalidArgumentError(None, None, f"logits should be a matrix, got shape {logits.shape}")
    return cast(ops.categorical(key, logits, samples=int(number(num_samples))), int64 if dtype is None else dtype)


def _shuffled(key, value):
    value = tensor(value)
    return ops.shuffle(key, value, axis=0) if value.ndim else value


# --- with the global generator --------------------------------------------------------------------------------------------------


def normal(shape, mean=0.0, stddev=1.0, dtype=float32, seed=None, name=None):
    return _normal(_next_key(seed), shape, mean, stddev, dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=float32, seed=None, name=None):
    return _truncated(_next_key(seed), shape, mean, stddev, dtype)


def uniform(shape, minval=0, maxval=None, dtype=float32, seed=None, name=None):
    if as_dtype(dtype).is_integer and maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {as_dtype(dtype)!r}")
    return _uniform(_next_key(seed), shape, minval, maxval, dtype)


def _with_parameters(shape, *parameters):
    """TensorFlow's samples have the shape in front of the parameters' own."""
    total = convert(0.0)
    for p in parameters:
        if p is not None:
            total = ops.add(total, ops.cast(tensor(p), dtype="float32"))
    return [*ints(shape), *total.dims]


def gamma(shape, alpha, beta=None, dtype=float32, seed=None, name=None):
    return _gamma(_next_key(seed), _with_parameters(shape, alpha, beta), alpha, beta, dtype)


def poisson(shape, lam, dtype=float32, seed=None, name=None):
    return _poisson(_next_key(seed), _with_parameters(shape, lam), lam, dtype)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    return _categorical(_next_key(seed), logits, num_samples, dtype)


@api
def shuffle(value, seed=None, name=None):
    return _shuffled(_next_key(seed), value)


# --- of a seed alone ------------------------------------------------------------------------------------------------------------


def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype=float32, name=None, alg="auto_select"):
    return _normal(_stateless_key(seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype=float32, name=None, alg="auto_select"):
    return _truncated(_stateless_key(seed), shape, mean, stddev, dtype)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=float32, name=None, alg="auto_select"):
    if as_dtype(dtype).is_integer and (minval is None) != (maxval is None):
        raise ValueError("For integer dtype, minval and maxval must be both None or both non-None")
    return _uniform(_stateless_key(seed), shape, minval, maxval, dtype)


def stateless_gamma(shape, seed, alpha, beta=None, dtype=float32, name=None):
    return _gamma(_stateless_key(seed), ints(shape), alpha, beta, dtype)


def stateless_poisson(shape, seed, lam, dtype=int32, name=None):
    return _poisson(_stateless_key(seed), ints(shape), lam, dtype)


def stateless_categorical(logits, num_samples, seed, dtype=int64, name=None):
    return _categorical(_stateless_key(seed), logits, num_samples, dtype)


def stateless_binomial(shape, seed, counts, probs, output_dtype=int32, name=None):
    return _binomial(_stateless_key(seed), ints(shape), counts, probs, output_dtype)


def _binomial(key, shape, counts, probs, dtype):
    return cast(ops.binomial(key, cast(tensor(counts), "float32"), cast(tensor(probs), "float32"), shape=shape), dtype)


def stateless_parameterized_truncated_normal(shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None):
    means, stddevs, low, high = [cast(tensor(t), "float64") for t in (means, stddevs, minvals, maxvals)]
    u = ops.random_uniform(_stateless_key(seed), None, None, shape=ints(shape), dtype="float64")
    a, b = ops.ndtr((low - means) / stddevs), ops.ndtr((high - means) / stddevs)
    return cast(ops.clip(means + stddevs * ops.ndtri(a + u * (b - a)), low, high), float32)


def split(seed, num=2, alg="auto_select"):
    key = _stateless_key(seed)
    made = ops.split_key(key, count=int(number(num)))
    return cast(reshape(made, [int(number(num)), 2]), tensor(seed).dtype)


def fold_in(seed, data, alg="auto_select"):
    seed = tensor(seed)
    return cast(ops.fold_in(_stateless_key(seed), cast(tensor(data), "uint32")), seed.dtype)


def stateless_shuffle(value, seed, alg="auto_select", name=None):
    return _shuffled(_stateless_key(seed), value)


def index_shuffle(index, seed, max_index):
    """Where an index goes in a shuffle of 0..max_index."""
    order = ops.shuffle(
        _stateless_key(cast(tensor(seed)[:2], int64)), ops.iota(shape=[int(number(max_index)) + 1], dtype="int32"), axis=0
    )
    index = tensor(index)
    return cast(ops.take(order, index, axis=0), index.dtype)


def random_index_shuffle(index, seed, max_index, rounds=4, name=None):
    return index_shuffle(index, seed, max_index)


# --- generators -----------------------------------------------------------------------------------------------------------------


def create_rng_state(seed, alg):
    words = [int(n) & 0xFFFFFFFFFFFFFFFF for n in np.asarray(seed).reshape(-1).tolist()]
    kept = 2 if _algorithm(alg) == 2 else 3
    made = np.array((words + [0, 0, 0])[:kept], np.uint64)
    return convert(made.view(np.int64))


class Generator:
    """A source of random numbers with a state of its own."""

    def __init__(self, copy_from=None, state=None, alg=None):
        if copy_from is not None:
            state, alg = copy_from.state.read(), copy_from.algorithm
        self._algorithm = _algorithm(alg)
        with eagerly():
            self._state = Variable(cast(tensor(state), int64), name="StateVar", trainable=False)

    @classmethod
    def from_seed(cls, seed, alg=None):
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_state(cls, state, alg):
        return cls(state=state, alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        return cls.from_seed(np.random.SeedSequence().entropy & 0x7FFFFFFFFFFFFFFF, alg)

    @classmethod
    def from_key_counter(cls, key, counter, alg):
        counter = ints(counter)
        return cls(state=np.array([*counter, number(key)], np.int64), alg=alg)

    _is_trackable = True

    def _trackable_children(self):
        return {"_state_var": self._state}

    state = property(lambda self: self._state)
    algorithm = property(lambda self: self._algorithm)
    key = property(lambda self: self._state.read()[2])

    def reset(self, state):
        self._state.assign(cast(tensor(state), int64))

    def reset_from_seed(self, seed):
        self.reset(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key, counter):
        self.reset(np.array([*ints(counter), number(key)], np.int64))

    def skip(self, delta):
        before = self._state.read()
        self._state.assign(ops.add(before, convert(np.array([int(number(delta)) * 256, 0, 0], np.int64))))
        return before

    def _next(self):
        state = self._state.read()
        self._state.assign(ops.add(state, convert(np.array([256, 0, 0], np.int64))))
        low = ops.cast(state, dtype="uint32")
        return ops.fold_in(ops.stack([ops.add(low[2], low[1]), low[0]]), low[0])

    def make_seeds(self, count=1):
        bits = ops.random_bits(self._next(), shape=[2, int(number(count))])
        return cast(bits, int64)

    def split(self, count=1):
        seeds = self.make_seeds(count).numpy()
        return [Generator.from_seed(seeds[:, i], self._algorithm) for i in range(int(count))]

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=float32, name=None):
        return _normal(self._next(), shape, mean, stddev, dtype)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype=float32, name=None):
        return _truncated(self._next(), shape, mean, stddev, dtype)

    def uniform(self, shape, minval=0, maxval=None, dtype=float32, name=None):
        if as_dtype(dtype).is_integer and maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {as_dtype(dtype)!r}")
        return _uniform(self._next(), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape, dtype=as_dtype("uint64"), name=None):
        high = cast(ops.random_bits(self._next(), shape=_extents(shape)), "uint64")
        low = cast(ops.random_bits(self._next(), shape=_extents(shape)), "uint64")
        return cast(ops.add(ops.multiply(high, convert(np.uint64(2**32))), low), dtype)

    def binomial(self, shape, counts, probs, dtype=int32, name=None):
        return _binomial(self._next(), ints(shape), counts, probs, dtype)


def _algorithm(alg):
    if alg is None:
        return Algorithm.PHILOX.value
    if isinstance(alg, str):
        return {"philox": 1, "threefry": 2, "auto_select": 1}[alg]
    return alg.value if isinstance(alg, Algorithm) else int(number(alg))


_generator = None


def get_global_generator():
    global _generator
    if _generator is None:
        seed = _Global.seed
        _generator = Generator.from_non_deterministic_state() if seed is None else Generator.from_seed(seed)
    return _generator


def set_global_generator(generator):
    global _generator
    _generator = generator


# --- candidates for losses over many classes ------------------------------------------------------------------------------------


def _sampler(chances):
    def sample(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
        true, count, limit = tensor(true_classes), int(number(num_sampled)), int(number(range_max))
        p = chances(limit)
        rng = np.random.default_rng(_next_key(seed).numpy())
        found = rng.choice(limit, count, replace=not unique, p=p)
        # How often a class is expected among the samples: once at most when they are different.
        expected = -np.expm1(count * np.log1p(-np.minimum(p, 1 - 1e-12))) if unique else p * count
        return (
            convert(found.astype(np.int64)),
            convert(expected[true.numpy()].astype(np.float32)),
            convert(expected[found].astype(np.float32)),
        )

    return sample


uniform_candidate_sampler = _sampler(lambda n: np.full(n, 1 / n))
log_uniform_candidate_sampler = _sampler(lambda n: np.log((np.arange(n) + 2) / (np.arange(n) + 1)) / np.log(n + 1))
learned_unigram_candidate_sampler = _sampler(lambda n: np.full(n, 1 / n))


def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    true, count = tensor(true_classes), int(number(num_sampled))
    return convert(
        np.arange(count, dtype=np.int64)
    ), convert(np.ones(true.shape, np.float32)), convert(np.ones(count, np.float32))


def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, vocab_file="", distortion=1.0, num_reserved_ids=0, num_shards=1, shard=0,
                                    unigrams=(), seed=None, name=None):  # fmt: skip
    if vocab_file:
        with open(vocab_file) as f:
            unigrams = [float(line.strip().split(",")[-1]) for line in f if line.strip()]
    weights = np.array([0] * num_reserved_ids + list(unigrams), np.float64) ** distortion
    weights[:num_reserved_ids] = 0
    p = weights / weights.sum()
    return _sampler(lambda n: p[:n] / p[:n].sum())(true_classes, num_true, num_sampled, unique, range_max, seed)


class experimental:
    """Names that are in tf.random too."""

    Algorithm, Generator = Algorithm, Generator
    create_rng_state, get_global_generator, set_global_generator = staticmethod(create_rng_state), staticmethod(
        get_global_generator
    ), staticmethod(set_global_generator)
    index_shuffle, stateless_fold_in, stateless_split = staticmethod(index_shuffle), staticmethod(fold_in), staticmethod(split)
    stateless_shuffle = staticmethod(stateless_shuffle)
