"""tf.saved_model: objects with their variables and traced functions in a folder. The functions are the engine's own graphs."""

import json
import os
import re
import shutil
import tempfile

import numpy as np

from tandem import _core, _trackable, errors, nest
from tandem._bundle import Reader
from tandem._bundle import write as write_bundle
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._extension_type import ExtensionType, ImmutableDict, class_named, saved_name
from tandem._face import CoreVariable, Tensor, any_tensor
from tandem._function import Function
from tandem._function.concrete import _TENSOR, ConcreteFunction
from tandem._module import Module
from tandem._specs import TensorSpec
from tandem._trace import begun_again
from tandem._variable import Variable

ASSETS_DIRECTORY, ASSETS_KEY, DEBUG_DIRECTORY, DEBUG_INFO_FILENAME_PB = (
    "assets",
    "saved_model_assets",
    "debug",
    "saved_model_debug_info.pb",
)
CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME = "inputs", "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "classes", "scores"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
GPU, TPU, SERVING, TRAINING = "gpu", "tpu", "serve", "train"
PREDICT_INPUTS, PREDICT_METHOD_NAME, PREDICT_OUTPUTS = "inputs", "tensorflow/serving/predict", "outputs"
REGRESS_INPUTS, REGRESS_METHOD_NAME, REGRESS_OUTPUTS = "inputs", "tensorflow/serving/regress", "outputs"
SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT, SAVED_MODEL_SCHEMA_VERSION = "saved_model.pb", "saved_model.pbtxt", 1
VARIABLES_DIRECTORY, VARIABLES_FILENAME = "variables", "variables"

_PROGRAM, _VERSION = "saved_model.tandem.json", 1
_RANKS = range(5)  # a spec of unknown rank is traced for these


class SaveOptions:
    """What TensorFlow can be told; here gradients are a part of graphs anyway, and there is one device."""

    def __init__(self, namespace_whitelist=None, save_debug_info=False, function_aliases=None, experimental_debug_stripper=False,
                 experimental_io_device=None, experimental_variable_policy=None, experimental_custom_gradients=True,
                 experimental_image_format=False, experimental_skip_saver=False, experimental_sharding_callback=None,
                 extra_tags=None):  # fmt: skip
        self.experimental_custom_gradients, self.function_aliases = experimental_custom_gradients, function_aliases


class LoadOptions:
    def __init__(self, allow_partial_checkpoint=False, experimental_io_device=None, experimental_skip_checkpoint=False,
                 experimental_variable_policy=None, experimental_load_function_aliases=False):  # fmt: skip
        self.allow_partial_checkpoint = allow_partial_checkpoint


class Asset:
    """A file that belongs to a model."""

    _is_trackable = True

    def __init__(self, path):
        self._path = os.fspath(path)

    @property
    def asset_path(self):
        return any_tensor(self._path)


# --- structures as JSON ----------------------------------------------------------------------------------------------------------


def _encoded(x, count):
    """A structure with tensors' places numbered from count[0]; TypeError for what cannot be written."""
    if x is _TENSOR:
        count[0] += 1
        return {"tensor": count[0] - 1}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    if isinstance(x, ExtensionType):
        return {"extension": saved_name(type(x)), "fields": {k: _encoded(v, count) for k, v in x._own_values().items()}}
    if isinstance(x, (dict, ImmutableDict)):
        return {"dict": [[k, _encoded(x[k], count)] for k in sorted(x)]}
    if hasattr(x, "as_list") and isinstance(x, tuple):
        return {"shape": x.as_list() if x.rank is not None else None}
    if isinstance(x, (list, tuple)):
        return {"list" if isinstance(x, list) else "tuple": [_encoded(v, count) for v in x]}
    raise TypeError(f"{type(x).__name__} {x!r}")


def _decoded(data, tensors):
    (kind, value), *rest = data.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "value":
        return value
    if kind == "extension":
        return class_named(value)._made({k: _decoded(v, tensors) for k, v in data["fields"].items()})
    if kind == "dict":
        return {k: _decoded(v, tensors) for k, v in value}
    if kind == "shape":
        from tandem._shape import TensorShape

        return TensorShape(value)
    made = [_decoded(v, tensors) for v in value]
    return made if kind == "list" else tuple(made)


# --- saving ---------------------------------------------------------------------------------------------------------------------


def _functions_of(x):
    """{name: Function} among an object's own attributes and those of its class."""
    if isinstance(x, (list, tuple, dict, CoreVariable)) or _trackable.is_leaf(x):
        return {}
    found = dict(x._functions) if isinstance(x, _Served) else {}
    if any(isinstance(f, LoadedFunction) for f in [*found.values(), *getattr(x, "__dict__", {}).values()]):
        raise NotImplementedError(
            "tf.saved_model.save: an object that was loaded cannot be saved again; its variables can, by tf.train.Checkpoint"
        )
    for name in dir(type(x)):
        if isinstance(getattr(type(x), name, None), Function):
            found[name] = getattr(x, name)
    found.update(
        {
            k: v
            for k, v in getattr(x, "__dict__", {}).items()
            if isinstance(v, (Function, ConcreteFunction)) and not k.startswith("__function_")
        }
    )
    return found


class _Writer:
    def __init__(self, root):
        self.objects, self.links, self.paths = _trackable.walk(root, _trackable.children_and_seeds)
        self.numbers = {}  # a variable's number -> its object's number
        for i, x in enumerate(self.objects):
            if _trackable.is_leaf(x):
                self.numbers[_core_of(x).number] = i
        self.tensors, self.captured = {}, {}

    def objects_as_json(self):
        made = []
        for x, links in zip(self.objects, self.links):
            node = {"children": dict(links)}
            if _trackable.is_leaf(x):
                key = f"{self.paths[id(x)]}/.ATTRIBUTES/VARIABLE_VALUE"
                self.tensors[key] = _trackable.value_of(x)
                node.update(
                    kind="variable",
                    key=key,
                    name=x.name.split(":")[0],
                    trainable=bool(getattr(x, "trainable", True)),
                    dtype=as_dtype(_core_of(x).dtype).name,
                )
            else:
                node["kind"] = "list" if isinstance(x, (list, tuple)) else "dict" if isinstance(x, dict) else "object"
                functions = {name: self.function(f) for name, f in _functions_of(x).items()}
                if functions:
                    node["functions"] = functions
            made.append(node)
        return made

    def function(self, f):
        concretes = [f] if isinstance(f, ConcreteFunction) else [c for c in f._concrete.values()]
        owner = f._owner if isinstance(f, ConcreteFunction) else f
        if isinstance(f, Function) and f._input_signature is not None and not concretes:
            concretes = [f.get_concrete_function()]
        made = {"name": owner._name, "parameters": _parameters(owner), "graphs": [], "unsaved": []}
        for c in concretes:
            if isinstance(c, str):
                made["unsaved"].append(c)
            else:
                self.concrete(c, made)
        return made

    def concrete(self, c, made):
        if c._why_eager is not None:
            made["unsaved"].append(c._why_eager)
            return
        wanted = [list(kind) for kind in dict.fromkeys(tuple(kind) for kind in c._traced_for)]
        specs = getattr(c, "_input_specs", None)
        if specs is not None and any(s.shape.rank is None for s in specs):
            wanted = [[(s.dtype, tuple([None] * rank if s.shape.rank is None else s.shape)) for s in specs] for rank in _RANKS]
        elif specs is not None:
            wanted = [[(s.dtype, tuple(s.shape)) for s in specs]]
        problems, before = [], len(made["graphs"])
        for kinds in wanted:
            # Arguments of unknown shape have nothing to do with each other, or, where that is no function, the same shape.
            for shared in (False, True):
                try:
                    made["graphs"].append(self.graph(c, kinds, shared))
                    break
                except (NotImplementedError, TypeError, ValueError, errors.OpError) as e:
                    problems.append(str(e).splitlines()[0])
                    if specs is None or sum(s.shape.rank is None for s in specs) < 2:
                        break
        if len(made["graphs"]) == before:
            made["unsaved"] += problems[:1]

    def graph(self, c, kinds, shared):
        """One graph, for tensors of these types; unknown extents are symbols, the same ones for all tensors if `shared`."""
        specs, symbols = [], 0
        for dtype, dims in kinds:
            extents = []
            for axis, d in enumerate(dims):
                if not isinstance(d, int):
                    d, symbols = _core.symbol(f"saved_{axis if shared else symbols}"), symbols + 1
                extents.append(d)
            specs.append((dtype, extents))
        owner, count = c._owner, c._owner._count
        result = c._result, getattr(c, "_outputs", None)
        try:
            text, results, externals = begun_again(lambda: _core.trace_graph(c._body, re.sub(r"\W", "_", owner._name), specs))
            structure, places = c._result
            outputs = [(o.dtype.name, o.shape.as_list()) for o in c._outputs]
        finally:
            owner._count = count
            c._result = result[0]
            if result[1] is not None:
                c._outputs = result[1]
        inputs, written = [], []
        for what, is_variable, is_written in externals:
            if is_variable and what not in self.numbers:
                raise AssertionError(
                    f"tf.saved_model.save: {owner._name} uses a variable that is no attribute of the saved object\n  hint: keep it as an attribute, as in "
                    "self.v = v"
                )
            place = {"variable": self.numbers[what]} if is_variable else {"constant": self.constant(what)}
            inputs.append(place)
            if is_written:
                written.append(place["variable"])
        shape = places[0] if structure is None else nest.pack_sequence_as(structure, list(places), expand_composites=True)
        return {
            "text": text, "results": results, "externals": inputs, "written": written, "arguments": _encoded(list(c._args), n := [0]),
            "keywords": _encoded(dict(c._kwargs), n), "outputs": _encoded(shape, [0]), "output_specs": outputs,
            "specs": [[as_dtype(d).name, [e if isinstance(e, int) else str(e) for e in dims]] for d, dims in specs],
        }  # fmt: skip

    def constant(self, tensor):
        value = tensor.numpy()
        key = self.captured.get(id(tensor))
        if key is None:
            key = self.captured[id(tensor)] = f"captured/{len(self.captured)}"
            self.tensors[key] = value
        return key


def _core_of(x):
    """The engine's variable behind one of Keras's."""
    return x if isinstance(x, CoreVariable) else x._value


def _parameters(owner):
    """[[name, has a default, default]] of a function, without self; a default that is no plain value counts as none."""
    import inspect

    made = []
    for p in inspect.signature(owner._python_function).parameters.values():
        if p.name == "self" or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        plain = p.default is not p.empty and (p.default is None or isinstance(p.default, (bool, int, float, str)))
        made.append([p.name, plain, p.default if plain else None])
    return made


def _signatures(root, given):
    """{name: ConcreteFunction}."""
    if given is None:
        found = (
            [f for f in _functions_of(root).values() if isinstance(f, Function) and f._input_signature is not None]
            if not _is_keras(root)
            else []
        )
        given = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: found[0]} if len(found) == 1 else {}
    if isinstance(given, (Function, ConcreteFunction)):
        given = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: given}
    made = {}
    for name, f in given.items():
        if not isinstance(f, (Function, ConcreteFunction)):
            raise ValueError(
                f"tf.saved_model.save: signature {name!r} is a {type(f).__name__}, it must be a tf.function or a concrete function of one"
            )
        made[name] = f.get_concrete_function() if isinstance(f, Function) else f
    return made


def _is_keras(x):
    return _trackable._is_keras(x)


def save(obj, export_dir, signatures=None, options=None):
    """Writes an object's variables, in TensorFlow's checkpoint format, and its traced functions, as the engine's graphs."""
    if not _trackable.is_trackable(obj) and not _functions_of(obj) and not _trackable._has_attributes(obj):
        raise ValueError(
            f"Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for export. Got {obj} with type {type(obj)}."
        )
    if _is_keras(obj) and hasattr(obj, "inputs"):
        obj, signatures = _of_keras(obj, signatures)
    export_dir = os.path.abspath(os.fspath(export_dir))
    writer = _Writer(obj)
    concretes = _signatures(obj, signatures)
    program = {"version": _VERSION, "objects": writer.objects_as_json(), "signatures": {}}
    for name, c in concretes.items():
        made = writer.function(c)
        if signatures is None and made["graphs"] and not made["graphs"][0]["output_specs"]:
            continue  # a function without results, which nobody asked to be a signature
        if not made["graphs"]:
            raise NotImplementedError(f"tf.saved_model.save: signature {name!r} cannot be written: {made['unsaved'][0]}")
        program["signatures"][name] = made
    os.makedirs(os.path.dirname(export_dir), exist_ok=True)
    # Whole or not at all: made beside its place and moved there.
    work = tempfile.mkdtemp(prefix=f".{os.path.basename(export_dir)}.", dir=os.path.dirname(export_dir))
    try:
        made = os.path.join(work, "new")
        os.makedirs(os.path.join(made, ASSETS_DIRECTORY))
        write_bundle(os.path.join(made, VARIABLES_DIRECTORY, VARIABLES_FILENAME), writer.tensors)
        with open(os.path.join(made, _PROGRAM), "w") as f:
            json.dump(program, f)
        if os.path.exists(export_dir):
            os.rename(export_dir, os.path.join(work, "old"))
        os.rename(made, export_dir)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _of_keras(model, signatures):
    """A Keras model is saved as its variables and its call, in the way in which it is used for prediction."""
    if not model.built or not model.inputs:
        raise ValueError(
            f"tf.saved_model.save: the inputs of model {model.name!r} are not known\n  hint: a functional or Sequential model with an Input, or model.save"
        )
    served = _Served()
    served.variables_of_model = list(model.variables)
    structure = getattr(getattr(model, "_functional", None) or model, "_inputs_struct", None)
    if structure is None:
        structure = model.inputs[0] if len(model.inputs) == 1 else list(model.inputs)
    specs = nest.map_structure(lambda t: TensorSpec(t.shape, t.dtype, t.name), structure)
    call = Function(lambda x: model(x, training=False), input_signature=[specs], autograph=False, name="call")
    served._set_function("__call__", call)
    if signatures is None:
        names = [n.split(":")[0] for n in getattr(model, "output_names", ["output_0"])]

        def serve(x):
            return dict(zip(names, nest.flatten(model(x, training=False))))

        signatures = Function(serve, input_signature=[specs], autograph=False, name="serving_default")
    return served, signatures


# --- loading --------------------------------------------------------------------------------------------------------------------


class _Graph:
    """One graph of a file, and its forms for the extents that it was called with."""

    def __init__(self, data, objects, constants):
        self.data, self.forms = data, {}
        self.specs = [(as_dtype(d), dims) for d, dims in data["specs"]]
        self.externals = [objects[p["variable"]] if "variable" in p else constants[p["constant"]] for p in data["externals"]]
        self.written = [objects[i] for i in data["written"]]

    def call(self, tensors):
        values = {}
        for t, (_, dims) in zip(tensors, self.specs):
            values.update({d: str(n) for d, n in zip(dims, t.dims) if isinstance(d, str)})
        key = tuple(values.values())
        run = self.forms.get(key)
        if run is None:
            text = re.sub(r"\bsaved_\d+\b", lambda m: values.get(m.group(), m.group()), self.data["text"])
            run = self.forms[key] = _core.ReadGraph(text)
        outputs = run([*tensors, *[e.read() if isinstance(e, CoreVariable) else e for e in self.externals]])
        count = self.data["results"]
        for variable, value in zip(self.written, outputs[count:]):
            variable.assign(value)
        return _decoded(self.data["outputs"], outputs[:count])

    def matched(self, args, kwargs):
        """The call's tensors, if it is one that this graph was made for."""
        tensors = {}
        try:
            fits = self._match(self.data["arguments"], list(args), tensors) and self._match(
                self.data["keywords"], dict(kwargs), tensors
            )
        except (TypeError, ValueError):
            return None
        if not fits:
            return None
        found, extents = [tensors[i] for i in range(len(self.specs))], {}
        for t, (_, dims) in zip(found, self.specs):
            for d, n in zip(dims, t.dims):
                if isinstance(d, str) and extents.setdefault(d, n) != n:
                    return None
        return found

    def _match(self, data, x, tensors):
        (kind, value), *_ = data.items()
        if kind == "tensor":
            dtype, dims = self.specs[value]
            if isinstance(x, CoreVariable):
                x = x.read()
            x = any_tensor(x, None if isinstance(x, (Tensor, Composite, np.ndarray, np.generic)) else dtype)
            if not isinstance(x, Tensor) or x.dtype is not dtype or x.ndim != len(dims):
                return False
            tensors[value] = x
            return all(not isinstance(d, int) or d == n or not isinstance(n, int) for d, n in zip(dims, x.dims))
        if kind == "value":
            return type(x) is type(value) and x == value
        if kind == "extension":
            if not isinstance(x, ExtensionType) or saved_name(type(x)) != value:
                return False
            own = x._own_values()
            return all(self._match(v, own[k], tensors) for k, v in data["fields"].items())
        if kind == "dict":
            return (
                hasattr(x, "keys") and sorted(x) == [k for k, _ in value] and all(self._match(v, x[k], tensors) for k, v in value)
            )
        if kind == "shape":
            return True  # it follows from the tensors
        return (
            isinstance(x, (list, tuple))
            and len(x) == len(value)
            and all(self._match(v, part, tensors) for v, part in zip(value, x))
        )

    def __str__(self):
        return ", ".join(f"{d.name}{[n if isinstance(n, int) else None for n in dims]}" for d, dims in self.specs)


class LoadedFunction:
    """A function of a file: the graphs that were traced before it was saved."""

    def __init__(self, data, objects, constants):
        self._data = data
        self._graphs = [_Graph(g, objects, constants) for g in data["graphs"]]
        self.__name__ = data["name"]

    def _bound(self, args, kwargs):
        """Arguments in the places of the parameters, with defaults."""
        parameters = self._data["parameters"]
        args, kwargs = list(args), dict(kwargs)
        for name, has_default, default in parameters[len(args) :]:
            if name in kwargs:
                args.append(kwargs.pop(name))
            elif has_default:
                args.append(default)
            else:
                break
        return args, kwargs

    def __call__(self, *args, **kwargs):
        args, kwargs = self._bound(args, kwargs)
        for graph in self._graphs:
            tensors = graph.matched(args, kwargs)
            if tensors is not None:
                return graph.call(tensors)
        known = "\n".join(f"  Option {i + 1}: {g}" for i, g in enumerate(self._graphs)) or "  none"
        why = "".join(f"\n  not saved: {w}" for w in self._data["unsaved"])
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. Got:\n  Positional arguments: {args}\n  Keyword arguments: {kwargs}\n"
            f"Expected these arguments to match one of the following {len(self._graphs)} option(s):\n{known}{why}\n"
            "  hint: call the function with such arguments, or get_concrete_function, before saving"
        )

    @property
    def structured_outputs(self):
        g = self._graphs[0].data
        specs = [TensorSpec(shape, dtype) for dtype, shape in g["output_specs"]]
        ranks = {len(shape) for h in self._graphs for _, shape in h.data["output_specs"]}
        if len(ranks) > 1:
            specs = [TensorSpec(None, s.dtype) for s in specs]
        return _decoded(g["outputs"], specs)

    def __repr__(self):
        return f"<LoadedFunction {self.__name__} of {len(self._graphs)} graphs>"


class _Signature(LoadedFunction):
    """A signature is called by the names of its arguments and gives a dict."""

    def __call__(self, *args, **kwargs):
        return self._named(super().__call__(*args, **kwargs))

    @staticmethod
    def _named(result):
        if isinstance(result, dict):
            return result
        return {f"output_{i}": x for i, x in enumerate(nest.flatten(result))}

    @property
    def structured_outputs(self):
        return {k: TensorSpec(s.shape, s.dtype, k) for k, s in self._named(super().structured_outputs).items()}

    @property
    def structured_input_signature(self):
        names = [p[0] for p in self._data["parameters"]]
        specs = self._graphs[0].specs
        ranks = {tuple(len(dims) for _, dims in g.specs) for g in self._graphs}
        shape = (lambda dims: None) if len(ranks) > 1 else (lambda dims: [d if isinstance(d, int) else None for d in dims])
        return (), {n: TensorSpec(shape(dims), dtype, n) for n, (dtype, dims) in zip(names, specs)}


class _Served(Module):
    """An object of a file, or one that stands for a Keras model in it: its attributes and its functions."""

    def __init__(self):
        super().__init__("saved")
        self._functions = {}

    def _set_function(self, name, f):
        if name == "__call__":
            self._functions[name] = f
        else:
            object.__setattr__(self, name, f)

    def __call__(self, *args, **kwargs):
        if "__call__" not in self._functions:
            raise TypeError("this object of a saved model is not callable: the one that was saved had no traced __call__")
        return self._functions["__call__"](*args, **kwargs)

    _is_trackable = True


def contains_saved_model(export_dir):
    return any(
        os.path.exists(os.path.join(export_dir, name)) for name in (_PROGRAM, SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT)
    )


def load(export_dir, tags=None, options=None):
    """What `save` wrote, as an object with the same attributes and functions."""
    export_dir = os.fspath(export_dir)
    path = os.path.join(export_dir, _PROGRAM)
    if not os.path.exists(path):
        if contains_saved_model(export_dir):
            raise NotImplementedError(
                f"tf.saved_model.load: {export_dir} was written by TensorFlow, whose graphs are not read\n  hint: its variables are, by "
                "tf.train.load_checkpoint(folder + '/variables/variables')"
            )
        raise OSError(
            f"SavedModel file does not exist at: {export_dir}/{{{SAVED_MODEL_FILENAME_PBTXT}|{SAVED_MODEL_FILENAME_PB}|{_PROGRAM}}}"
        )
    with open(path) as f:
        program = json.load(f)
    if program.get("version") != _VERSION:
        raise ValueError(
            f"tf.saved_model.load: {path} is of version {program.get('version')}, this Tandem reads version {_VERSION}"
        )
    reader = Reader(os.path.join(export_dir, VARIABLES_DIRECTORY, VARIABLES_FILENAME))
    objects = [_made(node, reader) for node in program["objects"]]
    constants = {
        name: any_tensor(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map() if name.startswith("captured/")
    }
    for node, x in zip(program["objects"], objects):
        _link(node, x, objects)
        for name, data in node.get("functions", {}).items():
            x._set_function(name, LoadedFunction(data, objects, constants))
    root = objects[0]
    root.signatures = {name: _Signature(data, objects, constants) for name, data in program["signatures"].items()}
    return root


def _made(node, reader):
    if node["kind"] == "variable":
        return Variable(reader.get_tensor(node["key"]), trainable=node["trainable"], name=node["name"], dtype=node["dtype"])
    return [] if node["kind"] == "list" else {} if node["kind"] == "dict" else _Served()


def _link(node, x, objects):
    for name, number in sorted(
        node["children"].items(), key=lambda item: (len(item[0]), item[0]) if node["kind"] == "list" else (0, "")
    ):
        child = objects[number]
        if node["kind"] == "list":
            x.append(child)
        elif node["kind"] == "dict":
            x[name] = child
        elif not name.startswith("__") and not isinstance(getattr(type(x), name, None), property):
            object.__setattr__(x, name, child)
