"""Each library of the wheel finds what it needs, in the wheel or in what every Debian has."""

import importlib.util
import pathlib
import subprocess

package = pathlib.Path(importlib.util.find_spec("tandem").origin).parent
SYSTEM = ("libc.", "libm.", "libmvec.", "libdl.", "librt.", "libpthread.", "libstdc++.", "libgcc_s.")
# Those of others are found through ours, which load them.
ours = [*package.glob("_core*.so"), *package.glob("lib/libtandem*"), package / "bin" / "tandem"]
assert len(ours) == 4, ours
for file in ours:
    listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, where = line.strip().partition(" => ")
        if where:
            assert "not found" not in where, f"{file.name} needs {name}, which is not found"
            assert name.startswith(SYSTEM) or str(package) in where, f"{file.name} takes {name} from {where}"
print(f"{len(ours)} files find what they need")
