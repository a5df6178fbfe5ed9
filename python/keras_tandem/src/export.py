class SavedModelExportArchive:
    """Writes a TensorFlow SavedModel elsewhere; there is no TensorFlow here that could."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("export: a SavedModel that TensorFlow runs is not written yet\n  hint: model.save('name.keras'), or model.save('folder')")
