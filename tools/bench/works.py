"""The six pieces of work of the training benchmark in Keras; bench/models has the same ones in C++, with the same names of layers."""
import dataclasses

import keras
from keras import layers as L


@dataclasses.dataclass
class Work:
    model: keras.Model
    batch: int
    steps: int  # of a pass over the data
    y: tuple  # the shape of one example's classes
    classes: int
    loss: object
    words: int = 0  # inputs are numbers of words below this; 0: they are floats in [0, 1)


def logits_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(tiny, dropout):
    inputs, units = (20, 16) if tiny else (1000, 128)
    model = keras.Sequential([L.Input((inputs,)), L.Dense(units, activation="relu", name="hidden"), L.Dense(1, activation="sigmoid", name="output")])
    return Work(model, 8 if tiny else 32, 10 if tiny else 2000, (1,), 2, "binary_crossentropy")


def mlp_big(tiny, dropout):
    inputs, units = (24, 32) if tiny else (1024, 2048)
    model = keras.Sequential([
        L.Input((inputs,)), L.Dense(units, activation="relu", name="first"), L.Dense(units, activation="relu", name="second"),
        L.Dense(10, name="output")])
    return Work(model, 16 if tiny else 256, 10 if tiny else 30, (), 10, logits_loss())


def cnn(tiny, dropout):
    side, f1, f2 = (12, 4, 6) if tiny else (28, 32, 64)
    model = keras.Sequential([
        L.Input((side, side, 1)), L.Conv2D(f1, 3, activation="relu", name="first"), L.MaxPooling2D(2),
        L.Conv2D(f2, 3, activation="relu", name="second"), L.MaxPooling2D(2), L.Flatten(), L.Dropout(0.5 if dropout else 0),
        L.Dense(10, activation="softmax", name="output")])
    return Work(model, 8 if tiny else 128, 10 if tiny else 60, (), 10, "sparse_categorical_crossentropy")


def resnet(tiny, dropout):
    def conv_norm(x, name, size, filters, stride):
        x = L.Conv2D(filters, size, strides=stride, padding="valid" if size == 1 else "same", use_bias=False, name=name + "_conv")(x)
        return L.BatchNormalization(name=name + "_norm")(x)

    def block(x, name, filters, stride):
        y = L.ReLU()(conv_norm(x, name + "_a", 3, filters, stride))
        y = conv_norm(y, name + "_b", 3, filters, 1)
        shortcut = x if stride == 1 and x.shape[-1] == filters else conv_norm(x, name + "_s", 1, filters, stride)
        return L.ReLU()(L.Add()([y, shortcut]))

    side, filters, blocks_per_stage = (8, 4, 1) if tiny else (32, 16, 3)
    inputs = L.Input((side, side, 3))
    x = L.ReLU()(conv_norm(inputs, "stem", 3, filters, 1))
    number = 0
    for stage in range(3):
        for i in range(blocks_per_stage):
            x = block(x, f"block{number}", filters << stage, 2 if stage > 0 and i == 0 else 1)
            number += 1
    outputs = L.Dense(10, name="output")(L.GlobalAveragePooling2D()(x))
    return Work(keras.Model(inputs, outputs), 6 if tiny else 64, 10 if tiny else 15, (), 10, logits_loss())


def transformer(tiny, dropout):
    words, length, features, heads = (50, 6, 16, 2) if tiny else (5000, 128, 256, 4)

    def encoder(x, name):
        a = L.MultiHeadAttention(heads, features // heads, name=name + "_attention")(x, x)
        x = L.LayerNormalization(name=name + "_attention_norm")(x + a)
        y = L.Dense(4 * features, activation="gelu", name=name + "_wide")(x)
        y = L.Dense(features, name=name + "_narrow")(y)
        return L.LayerNormalization(name=name + "_norm")(x + y)

    inputs = L.Input((length,), dtype="int32")
    x = encoder(encoder(L.Embedding(words, features, name="embedding")(inputs), "encoder0"), "encoder1")
    model = keras.Model(inputs, L.Dense(words, name="output")(x))
    return Work(model, 4 if tiny else 8, 10 if tiny else 15, (length,), words, logits_loss(), words=words)


def lstm(tiny, dropout):
    words, length, features, units = (50, 7, 8, 12) if tiny else (5000, 100, 64, 128)
    inputs = L.Input((length,), dtype="int32")
    x = L.LSTM(units, name="lstm")(L.Embedding(words, features, name="embedding")(inputs))
    model = keras.Model(inputs, L.Dense(1, activation="sigmoid", name="output")(x))
    return Work(model, 8 if tiny else 64, 10 if tiny else 20, (1,), 2, "binary_crossentropy", words=words)


WORKS = {"mlp": mlp, "mlp_big": mlp_big, "cnn": cnn, "resnet": resnet, "transformer": transformer, "lstm": lstm}
