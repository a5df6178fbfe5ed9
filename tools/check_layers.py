#!/usr/bin/env python3
"""Holds every #include line to the table of layers in cmake/layers.cmake.

A linker sees only what is called; a header can leak a layer that no symbol shows. So this reads the include lines themselves.

  src/X           its own folder and the folders that X may use, directly or through others
  include/tandem  other public headers only, because src/ is not there for a program that uses the library; and among
                  those, only headers of layers that its own layer may use
  devices/D       its own folder, and what TANDEM_DEVICES_USE may use
  examples        public headers only: an example shows what a user can do (skeleton_* folders: as cli)
  cli, python, bench   anything but devices/
  tests           anything

usage: check_layers.py [--root FOLDER]
Prints one line `file:line: why` for each violation; exits with 1 when there is one.
"""
import argparse
import os
import pathlib
import re
import sys

SUFFIXES = {".cpp", ".hpp", ".h", ".cc", ".inc"}
FOLDERS = ("include", "src", "devices", "cli", "python", "bench", "examples", "tests")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Line comments and strings are matched too, only to step over them: "// devices/*" does not begin a block comment.
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


class TableError(Exception):
    """cmake/layers.cmake itself is wrong; there is nothing to hold the files to."""


class Layers:
    """The table of cmake/layers.cmake."""

    def __init__(self, text):
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        self.direct = {}
        for row in self._rows(text, "TANDEM_LAYERS"):
            name, *uses = row.split()
            for used in uses:
                # Only rows above may be used: so there is no cycle, and the file reads in the order in which data flows.
                if used not in self.direct:
                    raise TableError(f"TANDEM_LAYERS: '{name}' uses '{used}', which is not a row above it")
            self.direct[name] = uses
        self.public = {}
        for row in self._rows(text, "TANDEM_PUBLIC_HEADERS"):
            layer, *headers = row.split()
            self._known(layer, "TANDEM_PUBLIC_HEADERS")
            self.public.update({header: layer for header in headers})
        (self.device_layer,) = self._rows(text, "TANDEM_DEVICES_USE")
        self._known(self.device_layer, "TANDEM_DEVICES_USE")

    @staticmethod
    def _rows(text, variable):
        match = re.search(r"\bset\(\s*" + variable + r"\b([^)]*)\)", text)
        if not match:
            raise TableError(f"there is no set({variable} ...)")
        return [row for row in re.findall(r'"([^"]*)"', match.group(1)) if row.strip()]

    def _known(self, layer, where):
        if layer not in self.direct:
            raise TableError(f"{where}: there is no layer '{layer}'")

    def closure(self, layer):
        """The layer and everything that it may use, directly or through others."""
        found, todo = set(), [layer]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend(self.direct[name])
        return found

    def of_public(self, header):
        """The layer of include/tandem/<header>: one in a folder belongs to the layer of that name."""
        header = pathlib.PurePosixPath(header)
        return header.parts[0] if len(header.parts) > 1 else self.public.get(header.stem, "frontend")


class Place:
    """Where a file is: kind is src, public, devices, skeleton or another top folder; name is the layer or the device."""

    def __init__(self, kind, name="", is_door=False):
        self.kind, self.name = kind, name
        self.is_door = is_door  # the public header that leads out-of-tree rows into src/

    def __str__(self):
        return {"src": f"src/{self.name}", "public": f"a public header of layer {self.name}",
                "devices": f"devices/{self.name}"}.get(self.kind, self.kind)


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        table = self.root / "cmake" / "layers.cmake"
        self.layers = Layers(table.read_text())
        self.violations = []
        self.file_count = 0

    def place(self, path):
        """The place of a path relative to the root; None when the rules do not know it."""
        parts = path.parts
        if parts[0] == "include":
            return Place("public", self.layers.of_public(pathlib.PurePosixPath(*parts[2:])), is_door=path.name == "extend.hpp")
        if parts[0] in ("src", "devices") and len(parts) > 2:
            return Place(parts[0], parts[1])
        if parts[0] == "examples" and len(parts) > 2 and parts[1].startswith("skeleton_"):
            return Place("skeleton")
        return Place(parts[0]) if parts[0] in FOLDERS else None

    def target(self, file, quoted, text):
        """The place that an include line means; None for the standard library, other libraries and files that the build generates."""
        parts = pathlib.PurePosixPath(text).parts
        if parts[0] == "devices":
            return Place("devices", parts[1] if len(parts) > 2 else "")
        candidates = []
        if quoted:
            candidates.append(file.parent / text)
        candidates += [self.root / folder / text for folder in ("include", "src", "devices", ".")]
        for candidate in candidates:
            resolved = pathlib.Path(os.path.normpath(candidate))  # not resolve(): a link must not hide what the line says
            if resolved.is_file() and resolved.is_relative_to(self.root):
                place = self.place(resolved.relative_to(self.root))
                if place:
                    return place
        # Not there yet, or generated: then the spelling decides.
        if parts[0] == "tandem":
            return Place("public", self.layers.of_public(pathlib.PurePosixPath(*parts[1:])))
        if parts[0] in self.layers.direct and len(parts) > 1:
            return Place("src", parts[0])
        return None

    def why_not(self, source, target):
        """The reason why a file at `source` may not include one at `target`; None when it may."""
        if source.kind == "tests":
            return None
        if target.kind == "devices":
            if source.kind == "devices" and source.name == target.name:
                return None
            return f"nobody includes devices/*; a device is reached through the contract in src/{self.layers.device_layer}"
        if target.kind not in ("src", "public"):
            return None if source.kind == target.kind else f"{source} may not include files of {target}"
        if source.kind == "public" and target.kind == "src" and not source.is_door:
            return f"a public header may include only public headers, for src/{target.name} is not there for users of the library"
        if source.kind == "examples" and target.kind == "src":
            return "an example may include only public headers: it shows what a user can do"
        if source.kind in ("src", "public"):
            allowed = self.layers.closure(source.name)
        elif source.kind == "devices":
            allowed = self.layers.closure(self.layers.device_layer)
        else:
            return None
        if target.name in allowed:
            return None
        return f"{source} may not use {target}; it may use: {' '.join(n for n in self.layers.direct if n in allowed)}"

    def check_file(self, file):
        path = file.relative_to(self.root)
        source = self.place(path)
        if source is None or (source.kind == "src" and source.name not in self.layers.direct):
            self.violations.append(f"{path}:1: its folder is not in the table of cmake/layers.cmake")
            return
        text = file.read_text(encoding="utf-8", errors="replace")
        # A block comment may quote an include line; its line breaks stay, so that the numbers hold.
        text = COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n") if m[0].startswith("/*") else m[0], text)
        for number, line in enumerate(text.split("\n"), start=1):
            match = INCLUDE.match(line)
            target = match and self.target(file, match.group(1) == '"', match.group(2))
            why = target and self.why_not(source, target)
            if why:
                self.violations.append(f"{path}:{number}: {match.group(2)}: {why}")

    def run(self):
        for folder in FOLDERS:
            for file in sorted((self.root / folder).rglob("*")):
                # A file directly in src/ or devices/ belongs to no layer, so place() must see it too.
                if file.suffix in SUFFIXES and file.is_file():
                    self.file_count += 1
                    self.check_file(file)
        return self.violations


def main():
    parser = argparse.ArgumentParser(description="checks the #include lines against cmake/layers.cmake")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, help="the checkout (default: this one)")
    try:
        checker = Checker(parser.parse_args().root)
    except (TableError, OSError) as error:
        sys.exit(f"check_layers: cmake/layers.cmake: {error}")
    for violation in checker.run():
        print(violation)
    print(f"check_layers: {checker.file_count} files, {len(checker.violations)} violations")
    return 1 if checker.violations else 0


if __name__ == "__main__":
    sys.exit(main())
