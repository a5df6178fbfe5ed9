"""The stubs of tandem._core: they are Python, and say what the module has."""

import ast
import inspect
import pydoc
import types
from pathlib import Path

import pytest

import tandem
from tandem import _core

STUBS = Path(_core.__file__).parent / "_core"
SPACES = ["ops", "keras_ops", "strict_ops"]


def tree(name):
    return ast.parse((STUBS / f"{name}.pyi").read_text(), feature_version=(3, 10))


def test_the_package_says_that_it_has_types():
    assert (Path(tandem.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("space", SPACES)
def test_every_row_has_a_stub_with_its_docstring(space):
    functions = {node.name: node for node in tree(space).body if isinstance(node, ast.FunctionDef)}
    rows = {name: row for name, row in vars(getattr(_core, space)).items() if isinstance(row, _core.Op)}
    assert len(rows) > 300 and sorted(functions) == sorted(rows)
    for name, row in rows.items():
        assert ast.get_docstring(functions[name]) == inspect.cleandoc(row.__doc__), name


def test_stubs_name_the_arguments_that_calls_take():
    functions = {node.name: node for node in tree("ops").body if isinstance(node, ast.FunctionDef)}

    def parameters(name):
        return [a.arg for a in functions[name].args.args + functions[name].args.kwonlyargs]

    assert parameters("add") == ["x", "y"]
    x = tandem.constant([[1.0, 5.0], [7.0, 2.0]])
    for name, values in (("argmax", [x, 1]), ("sum", [x, [0], True]), ("concatenate", [[x, x], 1])):
        names = parameters(name)
        by_name = getattr(_core.ops, name)(**dict(zip(names, values)))
        assert by_name.numpy().tolist() == getattr(_core.ops, name)(*values).numpy().tolist()
    for name in functions:  # an argument that no row has is named in the message
        with pytest.raises(TypeError, match="has no argument 'no_such_argument'|takes"):
            getattr(_core.ops, name)(no_such_argument=1)


def test_the_module_has_a_stub_for_each_of_its_names():
    module = tree("__init__")
    names = {n.name for n in module.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names |= {a.asname or a.name for n in module.body if isinstance(n, ast.ImportFrom) for a in n.names}
    names |= {t.id for n in module.body if isinstance(n, ast.Assign) for t in n.targets}
    names |= {n.target.id for n in module.body if isinstance(n, ast.AnnAssign)}
    public = {n for n in dir(_core) if not n.startswith("_")}
    assert public <= names, f"without a stub: {sorted(public - names)}"
    tensor = next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    members = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    members |= {n.target.id for n in tensor.body if isinstance(n, ast.AnnAssign)}
    own = (n for n, member in vars(_core.Tensor).items() if not n.startswith("_") and not isinstance(member, types.FunctionType))  # the face adds some
    wanted = {"__add__", "__hash__", "__iter__", *own}
    assert wanted <= members, f"Tensor's stub lacks {sorted(wanted - members)}"
    for other in STUBS.glob("*.pyi"):
        ast.parse(other.read_text())


def test_help_shows_a_row():
    shown = pydoc.render_doc(_core.ops.softmax, renderer=pydoc.plaintext)
    assert "softmax(x" in shown and _core.ops.softmax.__doc__.splitlines()[-1] in shown
