"""Connectionist temporal classification (Graves et al., 2006): the loss, and decoding by best classes or by beam search."""
from tandem import _core

ops = _core.ops

# The log of a probability that is 0. A finite number, so that gradients of sums of such terms are numbers too.
_IMPOSSIBLE = -1e30


def _scalar(value, like):
    return ops.cast(value, dtype=like.dtype)


def _shifted(x, by, fill):
    """x along its last axis moved on by so many places."""
    rest = [0] * (x.ndim - 1)
    return ops.pad(x, fill, low=[*rest, by], high=[*rest, -by])


def loss(labels, logits, label_lengths, lengths, blank=0):
    """-log of the probability of labels [batch, n] under logits [batch, time, classes], for each example."""
    batch, count = labels.dims
    classes = logits.dims[-1]
    if blank < 0:
        blank = classes + blank
    places = 2 * count + 1  # a blank before each label and behind the last
    impossible = _scalar(_IMPOSSIBLE, logits)
    blanks = ops.full(ops.cast(blank, dtype="int32"), shape=[batch, count])
    path = ops.reshape(ops.stack([blanks, labels], axis=-1), shape=[batch, 2 * count])
    path = ops.pad(path, ops.cast(blank, dtype="int32"), low=[0, 0], high=[0, 1])
    # A label may follow the one before it without a blank between them when the two differ. Labels have the odd places: by its
    # class alone a label could be taken for a blank.
    before = _shifted(path, 2, ops.cast(blank, dtype="int32"))
    is_label = ops.equal(ops.remainder(ops.iota(shape=[batch, places], axis=1), 2), 1)
    may_skip = ops.logical_and(is_label, ops.not_equal(path, before))

    # Labels behind the end may be anything, also no class.
    known = ops.clip(path, 0, classes - 1)
    emitted = ops.take_along_axis(ops.log_softmax(logits), ops.expand_dims(known, axis=[1]), axis=-1)
    emitted = ops.transpose(emitted, perm=[1, 0, 2])
    steps = emitted.dims[0]
    is_inside = ops.less(ops.iota(shape=[steps, batch, 1], axis=0), ops.reshape(lengths, shape=[1, batch, 1]))

    # Before the first step every path is in front of the first blank: from there it goes to that blank or to the first label.
    is_start = ops.equal(ops.iota(shape=[batch, places], axis=1), 0)
    begin = ops.where(is_start, _scalar(0, logits), impossible)

    def step(carry, slices):
        (paths,), (emit, inside) = carry, slices
        skipped = ops.where(may_skip, _shifted(paths, 2, impossible), impossible)
        new = ops.add(ops.logaddexp(ops.logaddexp(paths, _shifted(paths, 1, impossible)), skipped), emit)
        return [ops.where(inside, new, paths)], []

    (end,), _ = _core.scan(step, [begin], [emitted, is_inside])

    # A path ends at the last label or at the blank behind it.
    last = ops.reshape(ops.multiply(label_lengths, 2), shape=[batch, 1])
    at_blank = ops.take_along_axis(end, last, axis=-1)
    at_label = ops.take_along_axis(end, ops.maximum(ops.subtract(last, 1), 0), axis=-1)
    at_label = ops.where(ops.greater(last, 0), at_label, impossible)
    return ops.negative(ops.squeeze(ops.logaddexp(at_blank, at_label), axis=[-1]))


def greedy(logits, lengths, merge_repeated=True, blank=0):
    """The best class of each step: labels [1, batch, time] followed by -1, and the negative sum of the scores [batch, 1]."""
    batch, time = logits.dims[:2]
    position = ops.iota(shape=[batch, time], axis=1)
    is_outside = ops.greater_equal(position, ops.reshape(lengths, shape=[batch, 1]))
    best = ops.where(is_outside, blank, ops.argmax(logits, axis=-1))
    score = ops.where(is_outside, _scalar(0, logits), ops.max(logits, axis=[-1]))
    is_dropped = ops.equal(best, blank)
    if merge_repeated:
        # -1 is no class, so that the first step repeats nothing
        is_dropped = ops.logical_or(is_dropped, ops.equal(best, _shifted(best, 1, ops.cast(-1, dtype="int32"))))
    labels = ops.where(is_dropped, -1, best)
    # What stays comes first, in its order.
    order = ops.argsort(ops.where(is_dropped, ops.extent(dims=[time]), position), axis=-1)
    labels = ops.take_along_axis(labels, order, axis=-1)
    return ops.expand_dims(labels, axis=[0]), ops.negative(ops.sum(score, axis=[1], keepdims=True))


def beam_search(logits, lengths, beam_width=100, top_paths=1, blank=0):
    """The likeliest label sequences [top_paths, batch, time], each followed by -1, and the logs of their
    probabilities [batch, top_paths].

    Prefixes are kept with two scores: of the ways that end in a blank, and of those that end in the last label. Each step a
    prefix stays as it is or grows by a label; a grown prefix that another beam already has gives its score to that beam, so that
    all beams are different.
    """
    batch, time, classes = logits.dims
    beams = beam_width
    if blank < 0:
        blank = classes + blank
    impossible = _scalar(_IMPOSSIBLE, logits)
    emitted = ops.transpose(ops.log_softmax(logits), perm=[1, 0, 2])
    is_inside = ops.less(ops.iota(shape=[time, batch], axis=0), ops.reshape(lengths, shape=[1, batch]))

    place = ops.iota(shape=[batch, beams, time], axis=2)
    class_numbers = ops.iota(shape=[1, 1, classes], axis=2)
    is_blank = ops.equal(class_numbers, blank)
    is_first = ops.equal(ops.iota(shape=[batch, beams], axis=1), 0)

    labels = ops.full(ops.cast(-1, dtype="int32"), shape=[batch, beams, time])
    count = ops.full(ops.cast(0, dtype="int32"), shape=[batch, beams])
    in_blank = ops.where(is_first, _scalar(0, logits), impossible)
    in_label = ops.full(impossible, shape=[batch, beams])

    def last_of(labels, count):
        found = ops.take_along_axis(labels, ops.expand_dims(ops.maximum(ops.subtract(count, 1), 0), axis=[2]), axis=2)
        return ops.where(ops.greater(count, 0), ops.squeeze(found, axis=[2]), -1)

    def step(carry, slices):
        labels, count, in_blank, in_label = carry
        emit, inside = slices  # [batch, classes], [batch]
        last = last_of(labels, count)
        both = ops.logaddexp(in_blank, in_label)
        emit_all = ops.expand_dims(emit, axis=[1])
        emit_last = ops.take_along_axis(emit, ops.maximum(last, 0), axis=1)

        # Grown by each class: after the same label only from a blank.
        repeats = ops.equal(class_numbers, ops.expand_dims(last, axis=[2]))
        grown = ops.add(ops.where(repeats, ops.expand_dims(in_blank, axis=[2]), ops.expand_dims(both, axis=[2])), emit_all)
        grown = ops.where(is_blank, impossible, grown)

        # parents[b, j, i]: beam j is beam i and one more label.
        shorter = ops.where(ops.equal(place, ops.expand_dims(ops.subtract(count, 1), axis=[2])), -1, labels)
        same = ops.all(ops.equal(ops.expand_dims(shorter, axis=[2]), ops.expand_dims(labels, axis=[1])), axis=[3])
        is_real = ops.greater(both, _scalar(_IMPOSSIBLE / 2, logits))
        same = ops.logical_and(same, ops.expand_dims(ops.logical_and(ops.greater(count, 0), is_real), axis=[2]))
        parents = ops.logical_and(same, ops.expand_dims(is_real, axis=[1]))
        # What the parent gives by growing by j's last label.
        by_last = ops.take_along_axis(
            ops.transpose(grown, perm=[0, 2, 1]), ops.expand_dims(ops.maximum(last, 0), axis=[2]), axis=1
        )  # [batch, j, i]
        given = ops.logsumexp(ops.where(parents, by_last, impossible), axis=[2])
        # taken[b, i, c]: growing i by c is already a beam.
        hot = ops.one_hot(last, classes=classes, dtype="float32")
        taken = ops.matmul(ops.cast(parents, dtype="float32"), hot, transpose_x=True)
        grown = ops.where(ops.greater(taken, 0), impossible, grown)

        stay_blank = ops.add(both, ops.expand_dims(emit[:, blank], axis=[1]))
        stay_label = ops.where(ops.greater(count, 0), ops.logaddexp(ops.add(in_label, emit_last), given), impossible)

        flat_grown = ops.reshape(grown, shape=[batch, beams * classes])
        candidates = ops.concatenate([ops.logaddexp(stay_blank, stay_label), flat_grown], axis=1)
        _, chosen = ops.top_k(candidates, k=beams)
        stays = ops.less(chosen, beams)
        number = ops.maximum(ops.subtract(chosen, beams), 0)
        origin = ops.where(stays, chosen, ops.floor_divide(number, classes))
        added = ops.where(stays, -1, ops.remainder(number, classes))

        old_count = ops.take_along_axis(count, origin, axis=1)
        old_labels = ops.take_along_axis(labels, ops.expand_dims(origin, axis=[2]), axis=1)
        is_end = ops.equal(place, ops.expand_dims(old_count, axis=[2]))
        writes = ops.logical_and(is_end, ops.logical_not(ops.expand_dims(stays, axis=[2])))
        new_labels = ops.where(writes, ops.expand_dims(added, axis=[2]), old_labels)
        new_count = ops.add(old_count, ops.cast(ops.logical_not(stays), dtype="int32"))
        new_blank = ops.where(stays, ops.take_along_axis(stay_blank, origin, axis=1), impossible)
        from_grown = ops.take_along_axis(flat_grown, number, axis=1)
        new_label = ops.where(stays, ops.take_along_axis(stay_label, origin, axis=1), from_grown)

        inside = ops.expand_dims(inside, axis=[1])
        new = [new_count, new_blank, new_label]
        kept = [ops.where(inside, n, o) for n, o in zip(new, [count, in_blank, in_label])]
        return [ops.where(ops.expand_dims(inside, axis=[2]), new_labels, labels), *kept], []

    (labels, count, in_blank, in_label), _ = _core.scan(step, [labels, count, in_blank, in_label], [emitted, is_inside])
    scores, chosen = ops.top_k(ops.logaddexp(in_blank, in_label), k=top_paths)
    labels = ops.take_along_axis(labels, ops.expand_dims(chosen, axis=[2]), axis=1)
    return ops.transpose(labels, perm=[1, 0, 2]), scores
