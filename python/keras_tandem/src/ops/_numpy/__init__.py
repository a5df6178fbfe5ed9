"""The functions of keras.ops.numpy, by kind; ../numpy.py is what Keras sees of them."""
