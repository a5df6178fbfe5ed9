"""Lets an unmodified Keras load the backend "tandem".

Keras 3.15 chooses its backend in chains of `if backend() == "…"`, each ending in an error for a name it does not know. The modules
that hold such a chain are loaded with one more case. A module that does not look as expected is an error: nothing is guessed. From 3.16
on Keras knows backends of other packages, and one constant is enough.
"""
import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import inspect
import os
import sys

NAME = "tandem"
PACKAGE = "keras_tandem.src"
TESTED = ((3, 15, 1), (3, 16))  # from, and below

# Modules with a chain, and what our case says.
CHOOSERS = {
    "keras.src.backend": f"from {PACKAGE}.flat import *\nfrom {PACKAGE}.variable import Variable as BackendVariable\ndistribution_lib = None",
    "keras.src.layers.layer": f"from {PACKAGE}.layer import BackendLayer",
    "keras.src.models.model": f"from {PACKAGE}.trainer import Trainer",
    "keras.src.optimizers.optimizer": f"from {PACKAGE}.optimizer import BackendOptimizer",
    "keras.src.export.saved_model": f"from {PACKAGE}.export import SavedModelExportArchive as BackendSavedModelExportArchive",
    "keras.src.trainers.trainer_test": f"from {PACKAGE}.trainer import Trainer",  # Keras's own tests
}


def _with_our_case(source, name):
    """The module's syntax tree with our case before the chain's last `else`."""
    tree, found = ast.parse(source), 0
    for node in tree.body:
        if not (isinstance(node, ast.If) and "backend() == '" in ast.unparse(node.test) and node.orelse):
            continue
        while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
        case = ast.parse(f"from keras.src.backend.config import backend as _backend\nif _backend() == {NAME!r}:\n    pass").body
        case[1].body = ast.parse(CHOOSERS[name]).body
        case[1].orelse, node.orelse = node.orelse, case
        found += 1
    if found != 1:
        raise ImportError(f"keras_tandem: {name} has {found} places that choose a backend, expected 1: this Keras is not supported")
    return ast.fix_missing_locations(tree)


def is_chosen():
    """Whether the program's backend is ours: by its name, or as "tensorflow" in a process where that name means Tandem."""
    name = os.environ.get("KERAS_BACKEND")
    alias = sys.modules.get("tandem._alias")
    return name == NAME or (name == "tensorflow" and alias is not None and alias.is_installed())


def _lend_face(module):
    """What Keras takes from TensorFlow on any backend, such as text layers, datasets from folders and summaries, it finds in tandem's face."""
    _allow(module)
    if is_chosen():
        module.tensorflow = module.LazyModule("tandem")
        module.gfile = module.LazyModule("tandem.io.gfile", pip_name="tandem")


def _allow(module):
    """Keras 3.16: a list of backends that come from packages."""
    if hasattr(module, "PLUGGABLE_BACKENDS"):
        module.PLUGGABLE_BACKENDS |= {NAME}
        return True
    return False


def _teach_dynamic_backend(module):
    """The backend of preprocessing layers, which may be another one than Keras's own."""
    if _allow(module):
        return
    kind = module.DynamicBackend
    get, put = kind.__getattr__, kind.set_backend

    def __getattr__(self, name):
        if self.__dict__.get("_backend") == NAME:
            return getattr(importlib.import_module(f"{PACKAGE}.flat"), name)
        return get(self, name)

    def set_backend(self, backend):
        if backend == NAME:
            self._backend = NAME
        else:
            put(self, backend)

    kind.__getattr__, kind.set_backend = __getattr__, set_backend


def _forget_with_session(module):
    """clear_session also drops what the engine keeps."""
    clear = module.clear_session

    @functools.wraps(clear)
    def clear_session(free_memory=True):
        clear(free_memory)
        if free_memory:
            from tandem import _core

            _core.release_memory()

    module.clear_session = clear_session


def _save_folders(module):
    """model.save("folder"), as TensorFlow's Keras 2 had it: a folder that load_model reads back whole."""
    save = module.save_model

    @functools.wraps(save)
    def save_model(model, filepath, overwrite=True, zipped=None, **kwargs):
        from keras_tandem import _folder

        if zipped is None and _folder.is_meant(filepath) and kwargs.get("save_format") in (None, "tf"):
            return _folder.save(model, filepath, overwrite)
        return save(model, filepath, overwrite=overwrite, zipped=zipped, **kwargs)

    module.save_model = save_model


def _normalize_whole(module):
    """Keras composes these normalizations; the engine has them whole. What they cannot do stays Keras's."""
    from keras.src.backend.config import backend

    if backend() != NAME:
        return
    from keras_tandem.src.ops import nn

    layer, rms = module._layer_normalization, module._rms_normalization

    def takes(x, axis, *factors):
        """Floats along axes, with factors that have an element a position, or none."""
        axes = [axis] if isinstance(axis, int) else list(axis)
        shape = tuple(x.shape)
        if not shape or "float" not in module.backend.standardize_dtype(x.dtype):
            return False
        extents = tuple(shape[a] for a in sorted(a % len(shape) for a in axes))
        return all(f is None or tuple(f.shape) == extents for f in factors)

    def _layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=None, rms_scaling=False):
        if rms_scaling or not takes(x, axis, gamma, beta):
            return layer(x, gamma, beta, axis, epsilon, rms_scaling)
        return nn.layer_normalization(x, gamma, beta, axis, epsilon)

    def _rms_normalization(x, scale=None, axis=-1, epsilon=None):
        return nn.rms_normalization(x, scale, axis, epsilon) if takes(x, axis, scale) else rms(x, scale, axis, epsilon)

    module._layer_normalization, module._rms_normalization = _layer_normalization, _rms_normalization


class _WithSparse:
    """Keras's backend, as layers see it that ask whether it has sparse tensors. Ours takes them, and most ops make dense ones of them; the flag itself stays
    False, since Keras's tests then make theirs with TensorFlow or JAX."""

    SUPPORTS_SPARSE_TENSORS = True

    def __init__(self, backend):
        self._backend = backend

    def __getattr__(self, name):
        return getattr(self._backend, name)


def _slice_sparse(module):
    """fit and its like take rows of arrays: a sparse tensor that is one of them becomes dense."""
    from keras.src.backend.config import backend

    if backend() != NAME:
        return
    adapter = module.get_data_adapter

    @functools.wraps(adapter)
    def get_data_adapter(x, *args, **kwargs):
        from keras.src import tree

        from keras_tandem.src.arrays import plain_sparse

        if "tandem._sparse" in sys.modules:
            x = tree.map_structure(plain_sparse, x) if isinstance(x, (list, tuple, dict)) else plain_sparse(x)
        return adapter(x, *args, **kwargs)

    module.get_data_adapter = get_data_adapter


def _take_sparse(module):
    if module.backend.backend() == NAME:
        module.backend = _WithSparse(module.backend)


def _profile_batches(module):
    """TensorBoard(profile_batch=…) knows the backends that can record; ours can."""
    from keras.src.backend.config import backend

    kind = module.TensorBoard
    init = kind.__init__
    names = list(inspect.signature(init).parameters)

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        if backend() != NAME:
            return init(self, *args, **kwargs)
        given = dict(zip(names[1:], args)) | kwargs
        profile_batch = given.pop("profile_batch", 0)
        init(self, **given)
        if profile_batch:
            self._init_profile_batch(profile_batch)

    kind.__init__ = __init__


def _weigh_losses(module):
    """In one of several replicas a loss counts by its part of the batch."""
    from keras.src.backend.config import backend

    if backend() == NAME:
        from keras_tandem.src import replicas

        module.scale_loss_for_distribution, module.unscale_loss_for_distribution = replicas.scale_loss, replicas.unscale_loss


def _allow_synchronized(module):
    """Keras refuses BatchNormalization(synchronized=True) on every backend but TensorFlow; ours has it, too."""
    from keras.src.backend.config import backend

    if backend() != NAME:
        return
    real = module.backend

    class Backend:
        """What the layer asks its backend for; to the one question of its name the answer is the one that has `synchronized`."""

        def __getattr__(self, name):
            return getattr(real, name)

        def backend(self):
            return "tensorflow"

    module.backend = Backend()


AFTER = {
    "keras.src.layers.normalization.batch_normalization": _allow_synchronized,
    "keras.src.losses.loss": _weigh_losses,
    "keras.src.trainers.data_adapters": _slice_sparse,
    "keras.src.layers.core.input_layer": _take_sparse,
    "keras.src.callbacks.tensorboard": _profile_batches,
    "keras.src.ops.nn": _normalize_whole,
    "keras.src.backend.config": _allow,
    "keras.src.utils.module_utils": _lend_face,
    "keras.src.utils.backend_utils": _teach_dynamic_backend,
    "keras.src.backend.common.global_state": _forget_with_session,
    "keras.src.saving.saving_api": _save_folders,
}


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        if fullname not in CHOOSERS:
            return super().get_code(fullname)
        source = self.get_data(self.path)
        if b"get_pluggable_backend_module" in source:  # 3.16 and later
            return super().get_code(fullname)
        return compile(_with_our_case(source, fullname), self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        super().exec_module(module)
        if module.__name__ in AFTER:
            AFTER[module.__name__](module)


class _Lent(importlib.abc.Loader):
    """Layers that compute with TensorFlow on any backend ask for Keras's backend of that name: they get ours."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(f"{PACKAGE}.flat")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "keras.src.backend.tensorflow" and is_chosen():
            return importlib.machinery.ModuleSpec(name, _Lent())
        if name not in CHOOSERS and name not in AFTER:
            return None
        if name == "keras.src.backend.config":  # the first of them that is loaded
            check_version()
            if is_chosen():  # a program may have said "tensorflow"; Keras reads the variable next
                os.environ["KERAS_BACKEND"] = NAME
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def check_version():
    """ImportError unless the installed Keras is one that was tested."""
    try:
        text = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError("tandem: Keras is not installed\n  hint: pip install 'keras>=3.15.1,<3.16'") from None
    version = tuple(int(part) for part in text.split(".")[:3] if part.isdigit())
    if not TESTED[0] <= version < TESTED[1] and os.environ.get("TANDEM_KERAS_UNTESTED") != "1":
        raise ImportError(
            f"tandem: Keras {text} is installed, tested are 3.15.1 up to below 3.16\n"
            "  hint: pip install 'keras>=3.15.1,<3.16', or set TANDEM_KERAS_UNTESTED=1 to try it"
        )


def install():
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "keras.src.backend" in sys.modules:
        loaded = sys.modules["keras.src.backend"].backend()
        raise ImportError(f"tandem: Keras is already loaded with the backend {loaded!r}\n  hint: import tandem before keras")
    sys.meta_path.insert(0, _Finder())
