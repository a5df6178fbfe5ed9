"""tools/check_layers.py, run as ctest runs it, over small made-up trees: a checker that never fails checks nothing."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"

TABLE = """
set(TANDEM_LAYERS
  "base   "
  # "ghost  base"
  "ir     base"
  "device ir"
  "engine device"
  "frontend engine"
)
set(TANDEM_PUBLIC_HEADERS
  "base   dtype shape"
)
set(TANDEM_DEVICES_USE "device")
"""


class CheckLayers(unittest.TestCase):
    def check(self, files, table=TABLE):
        """Runs the checker over a tree of {path: text}; gives its exit code and what it printed."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {"cmake/layers.cmake": table, **files}.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            run = subprocess.run([sys.executable, str(SCRIPT), "--root", folder], capture_output=True, text=True, check=False)
            return run.returncode, run.stdout + run.stderr

    def accepts(self, files):
        code, output = self.check(files)
        self.assertEqual(code, 0, output)

    def refuses(self, files, *lines):
        """Exactly these violations, each given by how its line begins."""
        code, output = self.check(files)
        self.assertEqual(code, 1, output)
        printed = output.splitlines()[:-1]
        self.assertEqual(len(printed), len(lines), output)
        for line in lines:
            self.assertTrue(any(p.startswith(line) for p in printed), f"no line begins with {line!r}:\n{output}")

    def test_downwards_is_allowed_through_any_number_of_layers(self):
        self.accepts({"src/engine/a.cpp": '#include "base/x.hpp"\n#include "ir/x.hpp"\n#include "engine/a.hpp"\n#include <vector>\n',
                      "src/ir/x.hpp": "#include <tandem/dtype.hpp>\n", "src/base/x.hpp": ""})

    def test_upwards_is_forbidden_and_the_line_is_named(self):
        self.refuses({"src/ir/a.cpp": '#include <vector>\n\n#include "engine/b.hpp"\n', "src/engine/b.hpp": ""},
                     "src/ir/a.cpp:3: engine/b.hpp: src/ir may not use src/engine; it may use: base ir")

    def test_the_spelling_hides_nothing(self):
        self.refuses({"src/ir/a.cpp": '#  include  "../engine/b.hpp"\n#include <engine/b.hpp>\n#include "engine/not_there_yet.hpp"\n',
                      "src/engine/b.hpp": ""},
                     "src/ir/a.cpp:1:", "src/ir/a.cpp:2:", "src/ir/a.cpp:3:")

    def test_public_headers_belong_to_layers(self):
        self.refuses({"src/ir/a.cpp": "#include <tandem/dtype.hpp>\n#include <tandem/tensor.hpp>\n"},
                     "src/ir/a.cpp:2: tandem/tensor.hpp: src/ir may not use a public header of layer frontend")
        self.refuses({"include/tandem/dtype.hpp": "#include <tandem/tensor.hpp>\n", "include/tandem/tensor.hpp": "#include <tandem/dtype.hpp>\n"},
                     "include/tandem/dtype.hpp:1:")

    def test_public_headers_stand_alone(self):
        self.refuses({"include/tandem/tensor.hpp": '#include "engine/b.hpp"\n', "src/engine/b.hpp": ""}, "include/tandem/tensor.hpp:1:")

    def test_nobody_includes_devices(self):
        files = {"devices/cpu/cpu.hpp": "", "devices/ref/ref.hpp": ""}
        self.refuses({**files, "src/engine/a.cpp": '#include "devices/cpu/cpu.hpp"\n'}, "src/engine/a.cpp:1:")
        self.refuses({**files, "src/engine/a.cpp": '#include "../../devices/cpu/cpu.hpp"\n'}, "src/engine/a.cpp:1:")
        self.refuses({**files, "cli/a.cpp": '#include "cpu/cpu.hpp"\n'}, "cli/a.cpp:1:")
        self.refuses({**files, "devices/cpu/a.cpp": '#include "cpu.hpp"\n#include "../ref/ref.hpp"\n'}, "devices/cpu/a.cpp:2:")

    def test_a_device_uses_the_contract_and_what_that_uses(self):
        self.refuses({"devices/cpu/kernels/a.cpp": '#include "device/d.hpp"\n#include "base/x.hpp"\n#include "engine/b.hpp"\n'},
                     "devices/cpu/kernels/a.cpp:3:")

    def test_examples_see_the_public_headers_only(self):
        self.refuses({"examples/demo/a.cpp": '#include <tandem/tensor.hpp>\n#include "b.hpp"\n#include "ir/x.hpp"\n', "examples/demo/b.hpp": ""},
                     "examples/demo/a.cpp:3:")
        self.accepts({"examples/skeleton_device/a.cpp": '#include "device/d.hpp"\n#include "b.hpp"\n', "examples/skeleton_device/b.hpp": ""})

    def test_tests_may_include_anything(self):
        self.accepts({"tests/unit/a.cpp": '#include "engine/b.hpp"\n#include "../../devices/cpu/cpu.hpp"\n', "devices/cpu/cpu.hpp": ""})

    def test_comments_are_no_code(self):
        self.accepts({"src/base/a.cpp": '// #include "engine/b.hpp"\n/*\n#include "engine/b.hpp"\n*/\n'})
        # What looks like a comment's beginning must not swallow real lines either.
        self.refuses({"src/base/a.cpp": '// nobody includes devices/*\n#include "engine/b.hpp"\nint a = f(/*flag=*/1);\n'}, "src/base/a.cpp:2:")

    def test_a_folder_outside_the_table(self):
        self.refuses({"src/extra/a.cpp": ""}, "src/extra/a.cpp:1: its folder is not in the table")
        self.refuses({"src/a.cpp": ""}, "src/a.cpp:1: its folder is not in the table")

    def test_a_wrong_table_is_an_error_of_its_own(self):
        code, output = self.check({}, TABLE.replace('"ir     base"', '"ir     engine"'))
        self.assertEqual(code, 1)
        self.assertIn("'ir' uses 'engine', which is not a row above it", output)
        self.assertEqual(self.check({}, "")[0], 1)


if __name__ == "__main__":
    unittest.main()
