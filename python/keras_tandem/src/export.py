class SavedModelExportArchive:
    """Would write a SavedModel that TensorFlow runs."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "export: a SavedModel that TensorFlow runs is not written yet\n  hint: model.save('name.keras'), or model.save('folder')"
        )
