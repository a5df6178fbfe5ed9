from keras.src.trainers import trainer as base_trainer


class Trainer(base_trainer.Trainer):
    pass
