"""Boxes in images: cropping, drawing, and choosing among overlapping ones. What is chosen depends on numbers, so it is computed on the host."""
import numpy as np

from tandem import random as _random
from tandem._arrays import _needs_data, cast
from tandem._convert import convert
from tandem._face import api, ints, number, ops, tensor

__all__ = [
    "combined_non_max_suppression", "crop_and_resize", "draw_bounding_boxes", "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "sample_distorted_bounding_box", "stateless_sample_distorted_bounding_box",
]  # fmt: skip


def _host(x, what):
    x = tensor(x)
    if x.is_traced:
        raise _needs_data(what)
    return x.numpy()


@api
def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0, name=None):
    x, boxes, which = cast(tensor(image), "float32"), tensor(boxes), tensor(box_indices)
    height, width = ints(crop_size)
    high, wide = x.shape[1], x.shape[2]

    def places(low, top, count, size):
        """[boxes, count] places in the image."""
        low, top = low * float(size - 1), top * float(size - 1)
        if count == 1:
            return ops.expand_dims((low + top) * 0.5, axis=[1])
        step = (top - low) / float(count - 1)
        return ops.expand_dims(low, axis=[1]) + ops.expand_dims(step, axis=[1]) * convert(np.arange(count, dtype=np.float32))

    ys, xs = places(boxes[:, 0], boxes[:, 2], height, high), places(boxes[:, 1], boxes[:, 3], width, wide)
    inside_y = ops.logical_and(ops.greater_equal(ys, 0), ops.less_equal(ys, float(high - 1)))
    inside_x = ops.logical_and(ops.greater_equal(xs, 0), ops.less_equal(xs, float(wide - 1)))
    inside = ops.logical_and(ops.expand_dims(inside_y, axis=[2]), ops.expand_dims(inside_x, axis=[1]))

    def pick(row, column):
        shape = [boxes.dims[0], height, width]
        row = ops.broadcast_to(
            ops.expand_dims(ops.cast(ops.clip(row, 0.0, float(high - 1)), dtype="int32"), axis=[2]), shape=shape
        )
        column = ops.broadcast_to(
            ops.expand_dims(ops.cast(ops.clip(column, 0.0, float(wide - 1)), dtype="int32"), axis=[1]), shape=shape
        )
        batch = ops.broadcast_to(ops.reshape(ops.cast(which, dtype="int32"), shape=[-1, 1, 1]), shape=shape)
        return ops.gather_nd(x, ops.stack([batch, row, column], axis=-1))

    if method == "nearest":
        made = pick(ops.floor(ys + 0.5), ops.floor(xs + 0.5))  # a half goes up, not to the even one
    else:
        top, left = ops.floor(ys), ops.floor(xs)
        down, right = ops.reshape(ys - top, shape=[-1, height, 1, 1]), ops.reshape(xs - left, shape=[-1, 1, width, 1])
        above = pick(top, left) * (1.0 - right) + pick(top, ops.ceil(xs)) * right
        below = pick(ops.ceil(ys), left) * (1.0 - right) + pick(ops.ceil(ys), ops.ceil(xs)) * right
        made = above * (1.0 - down) + below * down
    return ops.where(ops.expand_dims(inside, axis=[-1]), made, float(extrapolation_value))


@api
def draw_bounding_boxes(images, boxes, colors, name=None):
    x = tensor(images)
    array, boxes = np.array(_host(x, "tf.image.draw_bounding_boxes")), _host(boxes, "tf.image.draw_bounding_boxes")
    default = np.array(
        [
            [1, 1, 0, 1],
            [0, 0, 1, 1],
            [1, 0, 0, 1],
            [0, 1, 0, 1],
            [0.5, 0, 0.5, 1],
            [0.5, 0.5, 0, 1],
            [0.5, 0, 0, 1],
            [0, 0, 0.5, 1],
            [0, 1, 1, 1],
            [1, 0, 1, 1],
        ]
    )
    palette = default if colors is None else np.asarray(_host(colors, "colors"))
    _, high, wide, depth = array.shape
    for b in range(array.shape[0]):
        for i, (y0, x0, y1, x1) in enumerate(boxes[b]):
            colour = palette[i % len(palette)][:depth] if depth > 1 else palette[i % len(palette)][:1]
            top, bottom, left, right = int(y0 * (high - 1)), int(y1 * (high - 1)), int(x0 * (wide - 1)), int(x1 * (wide - 1))
            if top > bottom or left > right or bottom < 0 or top >= high or right < 0 or left >= wide:
                continue
            t, d, l, r = max(top, 0), min(bottom, high - 1), max(left, 0), min(right, wide - 1)
            if top >= 0:
                array[b, top, l : r + 1] = colour
            if bottom < high:
                array[b, bottom, l : r + 1] = colour
            if left >= 0:
                array[b, t : d + 1, left] = colour
            if right < wide:
                array[b, t : d + 1, right] = colour
    return convert(array, x.dtype)


def _overlap(boxes):
    y0, x0 = np.minimum(boxes[:, 0], boxes[:, 2]), np.minimum(boxes[:, 1], boxes[:, 3])
    y1, x1 = np.maximum(boxes[:, 0], boxes[:, 2]), np.maximum(boxes[:, 1], boxes[:, 3])
    area = (y1 - y0) * (x1 - x0)
    h = np.clip(np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0), 0, None)
    w = np.clip(np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0), 0, None)
    common = h * w
    union = area[:, None] + area - common
    return np.where(union > 0, common / np.where(union > 0, union, 1), 0)


def _chosen(overlaps, scores, limit, iou, threshold, sigma=0.0):
    scores = scores.astype(np.float64).copy()
    kept, final, alive = [], [], scores > threshold if threshold > -np.inf else np.ones(len(scores), bool)
    while len(kept) < limit and alive.any():
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        if scores[best] <= threshold and threshold > -np.inf:
            break
        kept.append(best)
        final.append(scores[best])
        alive[best] = False
        if sigma > 0:
            scores = scores * np.where(overlaps[best] <= iou, np.exp(-(overlaps[best] ** 2) / (2 * sigma)), 0.0)
            alive &= scores > threshold  # softly: what overlaps most has 0 left, and still is chosen when nothing else is
        else:
            alive &= ~(overlaps[best] > iou)
    return np.array(kept, np.int32), np.array(final, np.float32)


def _nms(boxes, scores, limit, iou, threshold, sigma=0.0):
    what = "tf.image.non_max_suppression"
    return _chosen(
        _overlap(_host(boxes, what).astype(np.float64)),
        _host(scores, what),
        int(number(limit)),
        float(number(iou)),
        float(number(threshold)),
        sigma,
    )


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), name=None):
    return convert(_nms(boxes, scores, max_output_size, iou_threshold, score_threshold)[0])


def non_max_suppression_with_scores(
    boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), soft_nms_sigma=0.0, name=None
):
    kept, final = _nms(boxes, scores, max_output_size, iou_threshold, score_threshold, float(soft_nms_sigma))
    return convert(kept), convert(final)


def non_max_suppression_overlaps(
    overlaps, scores, max_output_size, overlap_threshold=0.5, score_threshold=float("-inf"), name=None
):
    kept, _ = _chosen(
        _host(overlaps, "overlaps"),
        _host(scores, "scores"),
        int(number(max_output_size)),
        float(overlap_threshold),
        float(score_threshold),
    )
    return convert(kept)


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), pad_to_max_output_size=False, name=None,
                               sorted_input=False, canonicalized_coordinates=False, tile_size=512):  # fmt: skip
    all_boxes, all_scores = _host(boxes, "boxes"), _host(scores, "scores")
    lead = all_boxes.shape[:-2]
    limit = int(number(max_output_size))
    rows, counts = [], []
    for b, s in zip(all_boxes.reshape(-1, *all_boxes.shape[-2:]), all_scores.reshape(-1, all_scores.shape[-1])):
        kept, _ = _nms(convert(np.ascontiguousarray(b)), convert(np.ascontiguousarray(s)), limit, iou_threshold, score_threshold)
        counts.append(len(kept))
        rows.append(np.pad(kept, (0, limit - len(kept))) if pad_to_max_output_size or lead else kept)
    made = np.array(rows, np.int32).reshape(*lead, -1)
    return convert(made), convert(np.array(counts, np.int32).reshape(lead))


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold=0.5, score_threshold=float("-inf"), pad_per_class=False,
                                 clip_boxes=True, name=None):  # fmt: skip
    b, s = _host(boxes, "boxes"), _host(scores, "scores")
    per_class, total, classes = int(number(max_output_size_per_class)), int(number(max_total_size)), s.shape[2]
    size = min(total, per_class * classes) if pad_per_class else total
    made = [
        np.zeros((b.shape[0], size, 4), np.float32),
        np.zeros((b.shape[0], size), np.float32),
        np.zeros((b.shape[0], size), np.float32),
        np.zeros(b.shape[0], np.int32),
    ]
    for i in range(b.shape[0]):
        found = []
        for c in range(classes):
            of_class = np.ascontiguousarray(b[i, :, c if b.shape[2] > 1 else 0])
            kept, _ = _nms(
                convert(of_class), convert(np.ascontiguousarray(s[i, :, c])), per_class, iou_threshold, score_threshold
            )
            found += [(s[i, k, c], c, of_class[k]) for k in kept]
        found = sorted(found, key=lambda f: -f[0])[:size]
        for j, (score, c, box) in enumerate(found):
            made[0][i, j], made[1][i, j], made[2][i, j] = np.clip(box, 0, 1) if clip_boxes else box, score, c
        made[3][i] = len(found)
    from collections import namedtuple

    kind = namedtuple("CombinedNonMaxSuppression", ["nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"])
    return kind(*[convert(m) for m in made])


def _distorted(key, image_size, bounding_boxes, covered, ratio, area, attempts, whole):
    high, wide, depth = ints(image_size)
    boxes = _host(bounding_boxes, "boxes").reshape(-1, 4)
    if not len(boxes):
        if not whole:
            raise ValueError(
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
                "provide any bounding boxes."
            )
        boxes = np.array([[0, 0, 1, 1]], np.float32)
    rng = np.random.default_rng(key.numpy())
    ratio, area = ratio or (0.75, 1.33), area or (0.05, 1.0)
    best = (0, 0, high, wide)
    for _ in range(attempts or 100):
        r, a = rng.uniform(*ratio), rng.uniform(*area) * high * wide
        h, w = int(round(np.sqrt(a / r))), int(round(np.sqrt(a * r)))
        if not (0 < h <= high and 0 < w <= wide):
            continue
        top, left = rng.integers(0, high - h + 1), rng.integers(0, wide - w + 1)
        ok = False
        for y0, x0, y1, x1 in boxes * [high, wide, high, wide]:
            size = max((y1 - y0) * (x1 - x0), 1e-9)
            common = max(min(top + h, y1) - max(top, y0), 0) * max(min(left + w, x1) - max(left, x0), 0)
            ok |= common / size >= covered
        if ok:
            best = (int(top), int(left), h, w)
            break
    top, left, h, w = best
    box = np.array([[[top / high, left / wide, (top + h) / high, (left + w) / wide]]], np.float32)
    return convert(np.array([top, left, 0], np.int32)), convert(np.array([h, w, -1], np.int32)), convert(box)


def sample_distorted_bounding_box(image_size, bounding_boxes, seed=0, min_object_covered=0.1, aspect_ratio_range=None, area_range=None, max_attempts=None,
                                  use_image_if_no_bounding_boxes=None, name=None):  # fmt: skip
    return _distorted(
        _random._next_key(seed or None),
        image_size,
        bounding_boxes,
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )


def stateless_sample_distorted_bounding_box(image_size, bounding_boxes, seed, min_object_covered=0.1, aspect_ratio_range=None, area_range=None, max_attempts=None,
                                            use_image_if_no_bounding_boxes=None, name=None):  # fmt: skip
    return _distorted(
        _random._stateless_key(seed),
        image_size,
        bounding_boxes,
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )
