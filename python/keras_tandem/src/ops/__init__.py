from keras_tandem.src.ops import core, image, linalg, math, nn, numpy
