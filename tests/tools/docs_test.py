"""The documents: links lead somewhere, every decision is in the index, and the README's program is the one that is compiled."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("devices/*/README.md")])


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)  # a lambda looks like a link
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if "://" not in link:
                    with self.subTest(document=str(document.relative_to(ROOT)), link=link):
                        self.assertTrue((document.parent / link).exists())

    def test_every_decision_is_in_the_index(self):
        folder = ROOT / "docs" / "adr"
        index = (folder / "README.md").read_text()
        for record in folder.glob("[0-9]*.md"):
            with self.subTest(record=record.name):
                self.assertIn(f"]({record.name})", index)

    def test_invariants_that_the_code_names_exist(self):
        known = set(re.findall(r"^- \*\*(I\d+)\*\*", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE))
        self.assertIn("I1", known)
        # Code writes them as "I12: ..." at the beginning of a check's message.
        for source in [*ROOT.glob("src/**/*.[ch]pp"), *ROOT.glob("devices/**/*.[ch]pp")]:
            for name in re.findall(r'"(I\d+):', source.read_text()):
                with self.subTest(source=str(source.relative_to(ROOT)), invariant=name):
                    self.assertIn(name, known)

    def test_every_invariant_is_checked_or_says_how_it_holds(self):
        code = "".join(source.read_text() for source in [*ROOT.glob("src/**/*.[ch]pp"), *ROOT.glob("devices/**/*.[ch]pp")])
        checked = set(re.findall(r'"(I\d+):', re.sub(r"//.*", "", code)))
        for line in re.findall(r"^- \*\*I\d+\*\*.*(?:\n  .*)*", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE):
            name = re.search(r"I\d+", line).group()
            test = re.search(r"\*Test: `([^`]+)`", line)
            with self.subTest(invariant=name):
                if test:  # which says in words of its own that it is about this one
                    named = re.search(rf"//.*(?<!::)\b{name}\b", (ROOT / test.group(1)).read_text())
                    self.assertTrue(named, f"{test.group(1)} does not name {name}")
                else:
                    self.assertTrue(name in checked or "*By construction: " in line, f"{name} is named in no check, test or reason")

    def test_the_readme_counts_what_there_is(self):
        readme = (ROOT / "README.md").read_text()
        ops = len(re.findall(r"^## ", (ROOT / "docs" / "ops.md").read_text(), flags=re.MULTILINE))
        self.assertIn(f"\n| {ops} ops, each one row", readme)
        types = re.search(r"enum class DType[^{]*\{(.*?)\}", (ROOT / "include" / "tandem" / "dtype.hpp").read_text(), flags=re.DOTALL)
        count = len(re.findall(r"^\s*[A-Z]\w*|,\s*[A-Z]\w*", re.sub(r"//.*", "", types.group(1)), flags=re.MULTILINE))
        self.assertIn(f"\n| {count} element types", readme)
        there, names = re.search(r"^(\d+) of (\d+) names are there", (ROOT / "docs" / "coverage.md").read_text(), flags=re.MULTILINE).groups()
        self.assertIn(f" {int(names) - int(there)} of TensorFlow's {names} public names", readme)
        keras = re.search(r"The tests of Keras (\d+\.\d+)", (ROOT / "docs" / "keras_tests.md").read_text()).group(1)
        self.assertIn(f"real Keras {keras} on our backend", readme)

    def test_every_file_begins_with_what_it_owns(self):
        for folder in ("include", "src", "devices", "cli", "python", "bench", "tests"):
            for source in ROOT.glob(f"{folder}/**/*.[ch]pp"):
                first = source.read_text().split("\n", 1)[0]
                own_header = re.search(rf'#include ["<](?:.*/)?{source.stem}\.hpp[">]', first)  # which has the sentence
                with self.subTest(source=str(source.relative_to(ROOT))):
                    self.assertTrue(first.startswith("// ") or (source.suffix == ".cpp" and own_header), first)

    def test_the_version_is_one(self):
        version = re.search(r"project\(tandem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertIn(f'\nversion = "{version}"\n', (ROOT / "pyproject.toml").read_text())
        self.assertIn(f"\n## {version}", (ROOT / "CHANGELOG.md").read_text())

    def test_the_first_program_is_compiled(self):
        program = ROOT / "examples" / "first" / "main.cpp"
        shown = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
        self.assertEqual(shown.group(1), program.read_text())

    def test_the_tutorial_is_the_program_that_runs(self):
        program = ROOT / "examples" / "tutorial" / "main.cpp"
        pieces = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), flags=re.DOTALL)
        self.assertEqual("\n".join(pieces), program.read_text())


if __name__ == "__main__":
    unittest.main()
