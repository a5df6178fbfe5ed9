"""tf.image and the coding of images."""
import numpy as np

from inputs import array, distinct

KINDS = ["uint8", "float16", "float32", "float64", "int32", "bfloat16"]


def picture(rng, shape, dtype):
    return array(rng, shape, dtype, 0, 255) if dtype in ("uint8", "int32") else array(rng, shape, dtype, 0, 1)


def fill(cases):
    for name, args in {
        "adjust_brightness": [(0.2,), (-0.3,)], "adjust_contrast": [(2.0,), (0.5,)], "adjust_gamma": [(0.7,), (2.0, 1.5)], "adjust_hue": [(0.2,), (-0.4,)], "adjust_saturation": [(0.4,), (3.0,)], "central_crop": [(0.5,), (0.7,), (1.5,)], "flip_left_right": [()], "flip_up_down": [()], "transpose": [()],
        "crop_to_bounding_box": [(1, 1, 3, 4), (4, 4, 4, 4)], "pad_to_bounding_box": [(1, 2, 9, 10), (0, 0, 2, 2)], "resize_with_crop_or_pad": [(4, 9), (9, 3)], "resize_with_pad": [(9, 9), (4, 8)], "rot90": [(), (2,), (3,)], "rgb_to_grayscale": [()], "rgb_to_hsv": [()], "hsv_to_rgb": [()], "rgb_to_yiq": [()], "rgb_to_yuv": [()], "yiq_to_rgb": [()],
        "yuv_to_rgb": [()], "per_image_standardization": [()], "sobel_edges": [()], "image_gradients": [()], "total_variation": [()],
    }.items():  # fmt: skip
        function = f"tf.image.{name}"
        rng = cases.rng(function)
        for dtype in KINDS:
            for options in args:
                cases.call(function, picture(rng, (2, 6, 7, 3), dtype), *options)
                cases.call(function, picture(rng, (6, 7, 3), dtype), *options)
        cases.call(function, picture(rng, (6, 7), "float32"), *args[0])
        cases.call(function, picture(rng, (1, 6, 7, 1), "float32"), *args[0])
    cases.rng("tf.image.grayscale_to_rgb")
    for dtype in KINDS:
        cases.call("tf.image.grayscale_to_rgb", picture(rng, (2, 4, 5, 1), dtype))
    resizing(cases)
    boxes(cases)
    rng = cases.rng("tf.image.convert_image_dtype")
    for dtype in [*KINDS, "int8", "int16", "uint16", "int64"]:
        for other in [*KINDS, "int8", "int16", "uint16"]:
            for saturate in (False, True):
                cases.call("tf.image.convert_image_dtype", picture(rng, (3, 4), dtype), other, saturate=saturate, grad=[])
    for name in ("psnr", "ssim"):
        function = f"tf.image.{name}"
        rng = cases.rng(function)
        for dtype in ("uint8", "float32", "float64"):
            x = picture(rng, (2, 16, 16, 3), dtype)
            cases.call(function, x, picture(rng, (2, 16, 16, 3), dtype), max_val=255 if dtype == "uint8" else 1.0, grad=[])
    cases.call("tf.image.ssim_multiscale", picture(rng, (1, 180, 180, 1), "float32"), picture(rng, (1, 180, 180, 1), "float32"), 1.0, grad=[])
    rng = cases.rng("tf.image.extract_patches")
    for padding in ("SAME", "VALID"):
        for dtype in KINDS:
            cases.call("tf.image.extract_patches", picture(rng, (2, 6, 7, 2), dtype), [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 2, 1], padding)
    rng = cases.rng("tf.image.extract_glimpse")
    for centered in (True, False):
        cases.call("tf.image.extract_glimpse", picture(rng, (2, 6, 7, 2), "float32"), [3, 3], array(rng, (2, 2), "float32", -0.4, 0.4), centered=centered, normalized=True, noise="zero", grad=[])
    coding(cases)


def resizing(cases):
    rng = cases.rng("tf.image.resize")
    for method in ("bilinear", "lanczos3", "lanczos5", "bicubic", "gaussian", "nearest", "area", "mitchellcubic"):
        for dtype in KINDS if method in ("bilinear", "nearest") else ["uint8", "float32"]:
            for size in ([3, 9], [12, 14], [6, 7], [1, 1]):
                for options in ({}, {"antialias": True}):
                    cases.call("tf.image.resize", picture(rng, (2, 6, 7, 2), dtype), size, method, grad=[0] if dtype in ("float32",) else [], **options)
            cases.call("tf.image.resize", picture(rng, (6, 7, 2), dtype), [4, 9], method, preserve_aspect_ratio=True, grad=[])
    cases.call("tf.image.resize", picture(rng, (6, 7, 2), "float32"), [0, 4])
    cases.call("tf.image.resize", picture(rng, (6, 7), "float32"), [3, 4])
    rng = cases.rng("tf.image.crop_and_resize")
    for method in ("bilinear", "nearest"):
        for dtype in ("uint8", "float32", "float64", "int32"):
            cases.call("tf.image.crop_and_resize", picture(rng, (2, 6, 7, 2), dtype), np.array([[0, 0, 1, 1], [0.2, 0.3, 0.9, 0.6], [-0.5, 0.1, 1.2, 0.7]], np.float32), np.array([0, 1, 1], np.int32), [3, 4], method, 0.5, grad=[])


def boxes(cases):
    rng = cases.rng("boxes")
    low = array(rng, (12, 2), "float32", 0, 0.6)
    corners = np.concatenate([low, low + array(rng, (12, 2), "float32", 0.1, 0.4)], 1)
    scores = distinct(rng, (12,), "float32") / 10
    cases.call("tf.image.non_max_suppression", corners, scores, 5, 0.3, grad=[])
    cases.call("tf.image.non_max_suppression", corners, scores, 20, 0.5, 0.0, grad=[])
    cases.call("tf.image.non_max_suppression_with_scores", corners, scores, 6, 0.4, soft_nms_sigma=0.5, grad=[])
    cases.call("tf.image.non_max_suppression_padded", corners, scores, 6, 0.4, pad_to_max_output_size=True, grad=[])
    cases.call("tf.image.non_max_suppression_overlaps", np.abs(array(rng, (6, 6))), scores[:6], 4, 0.4, grad=[])
    cases.call("tf.image.combined_non_max_suppression", corners.reshape(1, 12, 1, 4), array(rng, (1, 12, 2), "float32", 0, 1), 3, 5, 0.4, grad=[])
    cases.call("tf.image.draw_bounding_boxes", np.zeros((1, 8, 9, 3), np.float32), corners[None, :2], np.array([[1, 0, 0], [0, 1, 0]], np.float32), grad=[])
    cases.code("tf.image.sample_distorted_bounding_box", "[t.shape for t in tf.image.sample_distorted_bounding_box([8, 9, 3], tf.constant([[[0.1, 0.2, 0.5, 0.9]]]))]")


def coding(cases):
    rng = cases.rng("tf.io.encode_png")
    for channels in (1, 2, 3, 4):
        for dtype in ("uint8", "uint16"):
            x = array(rng, (5, 6, channels), dtype, 0, 255)
            cases.code("tf.io.encode_png", f"tf.io.decode_png(tf.io.encode_png(x[0]), dtype=tf.{dtype})", x)
            cases.code("tf.io.decode_png", "tf.io.decode_png(tf.io.encode_png(x[0]), channels=3)", x)
            cases.code("tf.io.decode_image", "tf.io.decode_image(tf.io.encode_png(x[0]), dtype=tf.float32)", x)
    smooth = (np.add.outer(np.arange(16), np.arange(16))[:, :, None] * np.array([4, 5, 6])).astype(np.uint8)
    cases.code("tf.io.encode_jpeg", "tf.io.extract_jpeg_shape(tf.io.encode_jpeg(x[0], quality=100))", smooth)
    cases.code("tf.io.is_jpeg", "tf.io.is_jpeg(tf.io.encode_jpeg(x[0])), tf.io.is_jpeg(b'no')", smooth)
    cases.code("tf.io.decode_jpeg", "tf.cast(tf.io.decode_jpeg(tf.io.encode_jpeg(x[0], quality=100)), tf.int32) // 64", smooth // 64 * 64 + 32)
    for name in ("decode_png", "decode_jpeg", "decode_bmp", "decode_gif", "decode_image"):
        cases.code(f"tf.io.{name}", f"tf.io.{name}(b'no picture')")
        cases.code(f"tf.image.{name}", f"tf.image.{name}(b'')")
