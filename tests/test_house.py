"""The house rules, read off the source: floors, circles, sizes, docstrings, and what must stay unimported."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "photon"
#: From the ground up; floors in one group stand side by side and do not import each other.
FLOORS = (
    ("core", "errors"),
    ("device",),
    ("kernels",),
    ("models",),
    ("skills",),
    ("images",),
    ("engine",),
    ("sim", "bench"),
    ("data",),
    ("manifest",),
    ("plan",),
    ("job",),
    ("audit",),
    ("export", "report", "evaluate"),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
#: The facade of public names: may import anything, and only the CLI may import it.
FACADE = "photon"
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: Every module by its name. The scripts in assets make what lies beside them and are imported by nothing.
MODULES = {
    module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "assets" not in path.relative_to(PACKAGE).parts
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in MODULES.items()}


def imports_of(name: str) -> set[str]:
    """Our modules that ``name`` imports anywhere in its text, under TYPE_CHECKING and inside functions too."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                found.add(deeper if deeper in MODULES else base)
    return {other for other in found if other == FACADE or other.startswith(f"{FACADE}.")} - {name}


IMPORTS = {name: imports_of(name) for name in MODULES}


def floor_of(name: str) -> str:
    return name.split(".")[1]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def length_without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_every_module_stands_on_a_floor() -> None:
    assert {floor_of(name) for name in MODULES if name != FACADE} <= set(LEVEL)


def test_imports_go_down_only() -> None:
    wrong = []
    for name, others in IMPORTS.items():
        for other in others if name != FACADE else ():
            if other == FACADE:
                allowed = floor_of(name) == "cli"
            else:
                mine, theirs = floor_of(name), floor_of(other)
                allowed = mine == theirs or LEVEL[theirs] < LEVEL[mine]
            if not allowed:
                wrong.append(f"{name} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_no_import_circles() -> None:
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for other in sorted(IMPORTS.get(name, ())):
                visit(other, (*trail, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_imported_modules_exist() -> None:
    missing = {f"{name} imports {other}" for name, others in IMPORTS.items() for other in others - MODULES.keys()}
    assert not missing


@pytest.mark.parametrize("name", MODULES)
def test_sizes(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    long = {node.name: length_without_docstring(node) for node in functions(TREES[name])}
    assert not {function: lines for function, lines in long.items() if lines > MAX_FUNCTION_LINES}


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    empty = not TREES[name].body
    assert empty or ast.get_docstring(TREES[name]), "a module says what it is for"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_sorted(name: str) -> None:
    for node in TREES[name].body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            names = ast.literal_eval(node.value)
            assert names == sorted(names)
            assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith(("photon.engine", "photon.job"))])
def test_engine_and_job_reach_the_gpu_through_the_seam(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) != ("torch", "cuda"), f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
            assert not any(n == "torch.cuda" or n.startswith("torch.cuda.") for n in names), f"line {node.lineno}"
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("torch.cuda") for alias in node.names), f"line {node.lineno}"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import photon, photon.cli", "torch transformers datasets pyarrow PIL pydantic ruamel"),
        ("import photon.manifest.load", "torch transformers datasets pyarrow PIL"),
        ("import photon.engine.load, photon.job.run", "torch transformers datasets"),
    ],
)
def test_what_stays_unimported(code: str, heavy: str) -> None:
    """A help text or a wrong manifest is answered before anything heavy is loaded."""
    script = f"import sys; {code}; print(sorted(set({heavy.split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
