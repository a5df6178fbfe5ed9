class SavedModelExportArchive:
    """A SavedModel that TensorFlow runs is not written yet; Keras itself says so when it is asked for one."""
