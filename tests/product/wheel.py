"""The wheel of this checkout, installed in an environment of its own, outside: what those get who install hpn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.package import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
_NO_CHECKOUT = """\
import os, sys
_CHECKOUT, _ITS_VENV = {checkout!r}, {packages!r}
def _watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.abspath(arguments[0])
        if path.startswith(_CHECKOUT) and not path.startswith((_ITS_VENV, {prefix!r}, {base!r})):
            os.write(2, f"opened {{path}} of the checkout\\n".encode())
            os._exit(99)
sys.addaudithook(_watch)
"""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a folder to work in."""

    wheel: Path
    python: Path
    cwd: Path

    def hpn(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run its ``hpn`` from a folder that has nothing to do with the checkout; opening a file of that is exit 99."""
        return self._run(self.python.parent / "hpn", *arguments, **environment)

    def script(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a Python script of that folder."""
        return self._run(self.python, name)

    def _run(self, program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HPN_PLUGINS")}
        return subprocess.run(
            [str(program), *arguments],
            cwd=self.cwd,
            env={**clean, "HPN_STATE_DIR": str(self.cwd / "labs"), "COLUMNS": "160", **environment},
            capture_output=True,
            text=True,
        )


def install(folder: Path) -> Installed:
    """Build the wheel from a copy of the sources and install it; nothing comes from a network."""
    wheel = build(folder)
    venv.create(folder / "env", with_pip=False)
    packages = folder / "env" / _site_packages()
    _pip("install", "--no-index", "--no-deps", str(wheel), python=folder / "env" / "bin" / "python")
    theirs = sysconfig.get_path("purelib")
    # Not as sitecustomize: Debian's Python has one of its own, which comes first.
    (packages / "dependencies.pth").write_text(f"{theirs}\nimport no_checkout\n")
    watch = _NO_CHECKOUT.format(checkout=f"{ROOT}/", packages=theirs, prefix=sys.prefix, base=sys.base_prefix)
    (packages / "no_checkout.py").write_text(watch)
    (folder / "elsewhere").mkdir()
    return Installed(wheel, folder / "env" / "bin" / "python", folder / "elsewhere")


def build(folder: Path) -> Path:
    """The wheel, built below ``folder`` from a source distribution, as ``make dist`` does and those get who install."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in (*PACKAGES, "hpn", "LICENSES"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("cli.py", "pyproject.toml", "README.md", "LICENSE", "REUSE.toml"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-c", _SDIST, str(folder)], cwd=source, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    _pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(folder), str(sdist))
    (wheel,) = folder.glob("*.whl")
    return wheel


def version() -> str:
    """What the project file says; it is said nowhere else."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert isinstance(told, str)
    return told


def _site_packages() -> str:
    return f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def _pip(*arguments: str, python: Path | None = None) -> None:
    chosen = ("--python", str(python)) if python else ()
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", *chosen, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull})
    assert ended.returncode == 0, ended.stdout + ended.stderr
