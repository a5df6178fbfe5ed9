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

    def test_every_invariant_is_named_where_it_is_checked(self):
        code = [*ROOT.glob("src/**/*.[ch]pp"), *ROOT.glob("devices/**/*.[ch]pp"), *ROOT.glob("tests/**/*.cpp")]
        named = {name for source in code for name in re.findall(r"\bI\d+\b", source.read_text())}
        for line in re.findall(r"^- \*\*I\d+\*\*.*(?:\n  .*)*", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE):
            name = re.search(r"I\d+", line).group()
            with self.subTest(invariant=name):
                self.assertTrue(name in named or "*Not yet" in line, f"{name} is named in no code and not marked as not yet")

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
