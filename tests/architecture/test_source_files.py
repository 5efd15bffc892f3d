"""The shape of the source files (STYLE, section 2): one case a rule, which names the offenders."""

from __future__ import annotations

import ast
import inspect
import re

import mercer
from support.sources import SOURCE, texts, trees

LONGEST = 800


def exported(tree: ast.Module) -> list[str] | None:
    """Names that ``__all__`` itself lists, or None."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return [each.value for each in node.value.elts if isinstance(each, ast.Constant)]
    return None


def draws_globally(tree: ast.Module, text: str) -> bool:
    """Whether it has ``np.random.seed`` or its like, or a generator made at import."""
    if re.search(r"np\.random\.(seed|rand|randn|normal|uniform|choice|shuffle)\b", text):
        return True
    made = [ast.unparse(n) for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))]
    return any("np.random.default_rng" in statement for statement in made)


def test_public_names_are_listed_once() -> None:
    """Modules that the reference shows list their names; elsewhere an underscore marks the rest."""
    reference = (SOURCE.parents[1] / "docs" / "reference.md").read_text()
    for dotted in re.findall(r"^::: mercer\.(\S+)\.\w+$", reference, re.MULTILINE):
        assert exported(trees()[dotted.replace(".", "/") + ".py"]) is not None, dotted
    for name, tree in trees().items():
        names = exported(tree) or []
        assert len(set(names)) == len(names), name


def test_modules_that_pages_name_are_there() -> None:
    for page in sorted((SOURCE.parents[1] / "docs").rglob("*.md")):
        for folder, name in re.findall(r"`mercer\.(\w+)\.(\w+)`", page.read_text()):
            home = SOURCE / folder
            is_module = (home / f"{name}.py").exists() or f"{folder}.py" in texts()
            is_public = (home / "__init__.py").exists() and name in texts()[f"{folder}/__init__.py"]
            assert is_module or is_public, f"{page.name}: mercer.{folder}.{name}"


def test_no_file_is_too_long() -> None:
    assert [name for name, text in texts().items() if text.count("\n") > LONGEST] == []


def test_docstrings_and_annotations() -> None:
    assert [name for name, tree in trees().items() if not ast.get_docstring(tree)] == []
    long = [name for name, tree in trees().items() if len(tree.body) > 1]
    assert [n for n in long if "from __future__ import annotations" not in texts()[n]] == []


def undescribed(kind: type) -> set[str]:
    """Arguments of an estimator that its docstring does not describe."""
    described = (inspect.getdoc(kind) or "").split("Attributes\n")[0]
    names = re.findall(r"^(\w+(?:, \w+)*) :", described, re.MULTILINE)
    return {*inspect.signature(kind).parameters} - {each for n in names for each in n.split(", ")}


def test_every_argument_of_an_estimator_is_described() -> None:
    public = [getattr(mercer, name) for name in dir(mercer)]
    kinds = [each for each in public if inspect.isclass(each) and hasattr(each, "get_params")]
    assert len(kinds) >= 10
    assert {kind.__name__: undescribed(kind) for kind in kinds if undescribed(kind)} == {}


def test_no_global_random_state() -> None:
    assert [name for name, tree in trees().items() if draws_globally(tree, texts()[name])] == []
    for bad in ("np.random.seed(3)", "RNG = np.random.default_rng(0)"):
        assert draws_globally(ast.parse(bad), bad)


def test_a_loop_that_counts_no_references_returns_no_array() -> None:
    """Its caller would free the array that it was given."""
    uncounted = [loop for loop in _loops() if not _counts_references(loop)]
    assert len(uncounted) > 150
    assert {loop.name for loop in uncounted if _arrays(loop) & _returned(loop)} == set()


def test_a_loop_that_counts_no_references_is_given_no_array() -> None:
    """It would never free what a loop that it calls has made: a leak."""
    giving = {loop.name for loop in _loops() if _arrays(loop) & _returned(loop)}
    assert {"_renew", "_room_of_sets", "_eliminate", "_mixing_coef", "select"} <= giving
    called = {
        (loop.name, node.func.id)
        for loop in _loops()
        if not _counts_references(loop)
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert ("redraw", "append_in_place") in called
    assert {pair for pair in called if pair[1] in giving} == set()


def test_no_loop_assigns_an_array_to_a_slice() -> None:
    """It would compile two seconds for the words of an error."""
    assert len(_loops()) > 200
    assert {loop.name for loop in _loops() if any(map(_copies_to_slice, ast.walk(loop)))} == set()
    (bad, good) = ast.parse("x[:, 1:] = y\nx[:], y[:] = 0.0, -np.inf").body
    assert _copies_to_slice(bad)
    assert not _copies_to_slice(good)


def _loops() -> list[ast.FunctionDef]:
    return [
        loop
        for tree in trees().values()
        for loop in tree.body
        if isinstance(loop, ast.FunctionDef)
        and any(ast.unparse(mark).startswith("compiled(") for mark in loop.decorator_list)
    ]


def _counts_references(loop: ast.FunctionDef) -> bool:
    return any("allocates=True" in ast.unparse(mark) for mark in loop.decorator_list)


def _copies_to_slice(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    targets = [part for t in node.targets for part in getattr(t, "elts", [t])]
    is_slice = any(isinstance(s, ast.Slice) for t in targets for s in ast.walk(t))
    values = getattr(node.value, "elts", [node.value])
    return is_slice and not all(re.fullmatch(r"-?(\d.*|np\.inf)", ast.unparse(v)) for v in values)


def _arrays(loop: ast.FunctionDef) -> set[str]:
    """Names of which an element is taken, or that NumPy has made."""
    nodes = [*ast.walk(loop)]
    taken = {n.value for n in nodes if isinstance(n, ast.Subscript)}
    made = {
        part
        for n in nodes
        if isinstance(n, ast.Assign) and re.search(r"np\.\w+\(|\.copy\(", ast.unparse(n.value))
        for target in n.targets
        for part in getattr(target, "elts", [target])
    }
    return {each.id for each in taken | made if isinstance(each, ast.Name)}


def _returned(loop: ast.FunctionDef) -> set[str]:
    values = [node.value for node in ast.walk(loop) if isinstance(node, ast.Return) and node.value]
    parts = [part for v in values for part in (v.elts if isinstance(v, ast.Tuple) else [v])]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def test_every_source_folder_is_a_package() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
