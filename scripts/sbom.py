"""Writes the bill of materials of the program as CycloneDX 1.6 in JSON: every crate that is linked into it.

usage: sbom.py TARGET [SECONDS]

TARGET is the platform whose dependencies are listed, such as x86_64-unknown-linux-musl; SECONDS is the time of the
version, in seconds since 1970. Takes the graph from `cargo tree`, licences from `cargo metadata` and checksums from
Cargo.lock. C libraries (libdeflate, libwebp, zstd, ring, mimalloc) are part of the crates that compile them."""

import json
import re
import subprocess
import sys
import time
import tomllib
import uuid

ROOT = "tilefs"


def linked(target):
    """Returns the name and version of each crate that is linked into the program, each with the crates that it uses
    directly.

    `cargo metadata` would add dependencies that only tests or other crates of the workspace enable."""
    command = ["cargo", "tree", "--locked", "--package", ROOT, "--edges", "normal,no-proc-macro", "--target", target]
    printed = subprocess.check_output([*command, "--prefix", "depth", "--no-dedupe"], text=True)
    found, above = {}, []
    for line in printed.splitlines():
        depth, name, version = re.match(r"(\d+)(\S+) v(\S+)", line).groups()
        del above[int(depth) :]
        crate = (name, version)
        found.setdefault(crate, set())
        if above:
            found[above[-1]].add(crate)
        above.append(crate)
    return found


def reference(crate):
    name, version = crate
    return f"pkg:cargo/{name}@{version}"


def component(package, checksum, kind):
    crate = (package["name"], package["version"])
    made = {"type": kind, "bom-ref": reference(crate), "name": crate[0], "version": crate[1], "purl": reference(crate)}
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    if package["license"]:
        # Old crates write `MIT/Apache-2.0`.
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def main(target, seconds="0"):
    found = linked(target)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    described = json.loads(subprocess.check_output(command))["packages"]
    packages = {(package["name"], package["version"]): package for package in described}
    with open("Cargo.lock", "rb") as file:
        locked = tomllib.load(file)["package"]
    # The crates of this workspace come from no registry and have no checksum.
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    ordered = sorted(found)
    (root,) = (crate for crate in ordered if crate[0] == ROOT)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))),
            "component": component(packages[root], None, "application"),
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": [
            component(packages[crate], checksums[crate], "library") for crate in ordered if crate != root
        ],
        "dependencies": [
            {"ref": reference(crate), "dependsOn": [reference(used) for used in sorted(found[crate])]} for crate in ordered
        ],
    }
    # The same document gets the same serial number.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    document["serialNumber"] = f"urn:uuid:{number}"
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


main(*sys.argv[1:])
